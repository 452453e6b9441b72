package handlertx

import (
	"regexp"
	"strings"
)

// Ends reports whether one of the statements in a text ends the transaction, or a
// savepoint that a batch sets around its handler.
func Ends(sql string) bool { return anyStatement(sql, ends) }

// anyStatement reports whether one of the statements in a text does what is asked for.
func anyStatement(sql string, does func(statement string) bool) bool {
	if strings.IndexByte(sql, ';') < 0 {
		return does(sql)
	}
	// With standard_conforming_strings=off, and in E'…', a backslash escapes the quote.
	return anyOfMany(sql, false, does) || strings.IndexByte(sql, '\\') >= 0 && anyOfMany(sql, true, does)
}

// anyOfMany is anyStatement for a text with several statements.
func anyOfMany(sql string, backslash bool, does func(statement string) bool) bool {
	inBody := false // of a function in SQL, whose statements END ends
	for start, i := 0, 0; ; {
		if i == len(sql) {
			return does(sql[start:]) && !inBody
		}
		switch sql[i] {
		case ';':
			statement := sql[start:i]
			if does(statement) && !inBody {
				return true
			}
			inBody = inBody && !ends(statement) || beginsBody(statement)
			i++
			start = i
		case '\'', '"':
			i = afterQuote(sql, i, sql[i] == '\'' && (backslash || isEscapeString(sql, i)))
		case '$':
			i = afterDollar(sql, i)
		default:
			if rest := afterComment(sql, i); rest > i {
				i = rest
			} else {
				i++
			}
		}
	}
}

// beginsBody reports whether a statement creates a function or procedure whose body are
// statements: CREATE … BEGIN ATOMIC.
func beginsBody(statement string) bool {
	word, rest := nextWord(statement)
	return strings.EqualFold(word, "create") && strings.Contains(strings.ToLower(rest), "atomic")
}

// isEscapeString reports whether the quote at i begins an E'…'.
func isEscapeString(sql string, i int) bool {
	return i > 0 && (sql[i-1] == 'e' || sql[i-1] == 'E') && (i == 1 || !isWord(sql[i-2]))
}

// afterQuote is the position after the quoted text that begins at i.
func afterQuote(sql string, i int, backslash bool) int {
	quote := sql[i]
	for i++; i < len(sql); i++ {
		switch {
		case backslash && sql[i] == '\\':
			i++
		case sql[i] == quote: // a doubled quote begins the next quoted text
			return i + 1
		}
	}
	return len(sql)
}

// afterDollar is the position after the dollar-quoted text that begins at i, or after
// the dollar sign if none begins there.
func afterDollar(sql string, i int) int {
	end := i + 1
	for end < len(sql) && isWord(sql[end]) {
		end++
	}
	if end == len(sql) || sql[end] != '$' || i > 0 && isWord(sql[i-1]) || end > i+1 && sql[i+1] >= '0' && sql[i+1] <= '9' {
		return i + 1
	}
	tag := sql[i : end+1]
	if n := strings.Index(sql[end+1:], tag); n >= 0 {
		return end + 1 + n + len(tag)
	}
	return len(sql)
}

// afterComment is the position after the comment that begins at i, or i if none does.
func afterComment(sql string, i int) int {
	switch {
	case strings.HasPrefix(sql[i:], "--"):
		if n := strings.IndexAny(sql[i:], "\r\n"); n >= 0 {
			return i + n
		}
		return len(sql)
	case strings.HasPrefix(sql[i:], "/*"):
		depth := 0
		for i < len(sql) {
			switch {
			case strings.HasPrefix(sql[i:], "/*"):
				depth++
				i += 2
			case strings.HasPrefix(sql[i:], "*/"):
				depth--
				i += 2
			default:
				i++
			}
			if depth == 0 {
				break
			}
		}
	}
	return i
}

// ends reports whether one statement ends the transaction.
func ends(statement string) bool {
	word, rest := nextWord(statement)
	switch {
	case word == "":
		return false
	case strings.EqualFold(word, "commit"), strings.EqualFold(word, "end"), strings.EqualFold(word, "abort"):
		return true
	case strings.EqualFold(word, "prepare"):
		word, _ = nextWord(rest)
		return strings.EqualFold(word, "transaction")
	case strings.EqualFold(word, "rollback"):
		word, rest = nextWord(rest)
		if strings.EqualFold(word, "work") || strings.EqualFold(word, "transaction") {
			word, rest = nextWord(rest)
		}
		return !strings.EqualFold(word, "to") || namesBatchSavepoint(rest)
	case strings.EqualFold(word, "release"), strings.EqualFold(word, "savepoint"):
		return namesBatchSavepoint(rest)
	}
	return false
}

// spoils reports whether a text may leave its connection different for the next user: it
// removes prepared statements, or changes a setting for longer than the transaction. It does
// not see what a function or a DO block sets.
func spoils(sql string) bool {
	if strings.IndexByte(sql, ';') >= 0 {
		lower := strings.ToLower(sql)
		if strings.Contains(lower, "deallocate") || strings.Contains(lower, "discard") {
			return true
		}
	}
	return anyStatement(sql, setsForSession)
}

func setsForSession(statement string) bool {
	word, rest := nextWord(statement)
	switch {
	case strings.EqualFold(word, "deallocate"), strings.EqualFold(word, "discard"), strings.EqualFold(word, "reset"):
		return true
	case strings.EqualFold(word, "set"):
		word, _ = nextWord(rest)
		return !strings.EqualFold(word, "local") && !strings.EqualFold(word, "transaction") && !strings.EqualFold(word, "constraints")
	case strings.Contains(statement, "set_config"), strings.Contains(statement, "SET_CONFIG"):
		for _, call := range setConfig.FindAllStringIndex(statement, -1) {
			if !isLocal.MatchString(lastArgument(statement[call[1]:])) {
				return true
			}
		}
	}
	return false
}

// setConfig is the beginning of a call of set_config, and isLocal its last argument if the value
// is for the transaction alone.
var (
	setConfig = regexp.MustCompile(`(?i)set_config\s*\(`)
	isLocal   = regexp.MustCompile(`(?i)^\s*(?:is_local\s*(?:=>|:=)\s*)?true\s*$`)
)

// lastArgument is the last argument of the call whose opening parenthesis is before sql.
func lastArgument(sql string) string {
	for start, depth, i := 0, 0, 0; i < len(sql); {
		next := i + 1
		switch sql[i] {
		case '\'', '"':
			next = afterQuote(sql, i, isEscapeString(sql, i))
		case '$':
			next = afterDollar(sql, i)
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return sql[start:i]
			}
		case ',':
			if depth == 0 {
				start = next
			}
		default:
			next = max(next, afterComment(sql, i))
		}
		i = next
	}
	return ""
}

// namesBatchSavepoint reports whether a statement names a savepoint of a batch.
func namesBatchSavepoint(rest string) bool {
	word, rest := nextWord(rest)
	if strings.EqualFold(word, "savepoint") {
		word, rest = nextWord(rest)
	}
	if word == "" {
		word, _ = nextWord(strings.TrimPrefix(rest, `"`))
	}
	return strings.EqualFold(word, SaveHandler) || strings.EqualFold(word, SaveSwap)
}

// The savepoints of a batch.
const (
	SaveSwap    = "semel_swap"    // before a record is replaced
	SaveHandler = "semel_handler" // before the first statement of the handler
)

// nextWord is the next word of a statement, without blanks and comments before it.
func nextWord(sql string) (word, rest string) {
	i := 0
	for i < len(sql) {
		if rest := afterComment(sql, i); rest > i {
			i = rest
			continue
		}
		if c := sql[i]; c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != '(' {
			break
		}
		i++
	}
	end := i
	for end < len(sql) && isWord(sql[end]) {
		end++
	}
	return sql[i:end], sql[end:]
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
