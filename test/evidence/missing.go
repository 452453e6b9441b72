package main

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
)

// missing are the steps that the page does not show as passed with the code as it is. A
// commit that changed nothing but the docs leaves the code as it was.
func missing(ctx context.Context, root, page string, steps []step) []step {
	current := map[string]bool{} // by commit
	passed := map[string]bool{}  // by title
	for text := range strings.SplitSeq(page, heading) {
		title, _, _ := strings.Cut(text, "\n")
		commit := passedAt(text)
		if commit == "" {
			continue
		}
		same, known := current[commit]
		if !known {
			same = sameCode(ctx, root, commit)
			current[commit] = same
		}
		passed[title] = same
	}
	var left []step
	for _, s := range steps {
		if !passed[s.title()] {
			left = append(left, s)
		}
	}
	return left
}

var inSection = regexp.MustCompile("at commit `([0-9a-f]+)`, .* and passed\\.\n")

// passedAt is the commit at which the step of a section has passed. Empty: it failed, or
// the code had changes that were in no commit.
func passedAt(section string) string {
	if m := inSection.FindStringSubmatch(section); m != nil {
		return m[1]
	}
	return ""
}

// sameCode reports whether the files of a commit, without the docs, are those of now.
func sameCode(ctx context.Context, root, commit string) bool {
	return exec.CommandContext(ctx, "git", "-C", root, "diff", "--quiet", commit, "--", ".", ":(exclude)docs").Run() == nil
}
