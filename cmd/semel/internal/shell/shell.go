// Package shell writes commands that can be pasted into a shell.
package shell

import "strings"

// Command is a command: its words, its arguments, and
// its flags, each with a space before it. Arguments that begin with a dash would be taken for
// flags, so then all arguments come last, after "--".
func Command(words string, args []string, flags ...string) string {
	text, last := "", false
	for _, arg := range args {
		text += " " + Word(arg)
		last = last || strings.HasPrefix(arg, "-")
	}
	all := strings.Join(flags, "")
	if last {
		return words + all + " --" + text
	}
	return words + text + all
}

// Flag is a flag with a value, and a space before it. A value that begins with a dash
// would be taken for a flag, so it follows a "=".
func Flag(name, value string) string {
	between := " "
	if strings.HasPrefix(value, "-") {
		between = "="
	}
	return " --" + name + between + Word(value)
}

// Word is s as one word of a shell.
func Word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if s != "" && s[0] != '-' && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
