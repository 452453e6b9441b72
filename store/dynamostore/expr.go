package dynamostore

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is the attributes of a record.
type item = map[string]types.AttributeValue

// expression collects the names and values of a request's expressions. All names
// are aliases, because many short words are reserved.
type expression struct {
	names   map[string]string
	values  item
	aliases map[string]string // of names
}

func newExpression() *expression {
	return &expression{names: map[string]string{}, values: item{}, aliases: map[string]string{}}
}

// name is the alias of an attribute.
func (e *expression) name(attribute string) string {
	alias, ok := e.aliases[attribute]
	if !ok {
		alias = fmt.Sprintf("#n%d", len(e.aliases))
		e.aliases[attribute], e.names[alias] = alias, attribute
	}
	return alias
}

// value is a placeholder for a value.
func (e *expression) value(v types.AttributeValue) string {
	placeholder := fmt.Sprintf(":v%d", len(e.values))
	e.values[placeholder] = v
	return placeholder
}

// equal is the condition that an attribute has a value, or is absent if v is nil.
func (e *expression) equal(attribute string, v types.AttributeValue) string {
	if v == nil {
		return "attribute_not_exists(" + e.name(attribute) + ")"
	}
	return e.name(attribute) + " = " + e.value(v)
}

// allEqual joins the conditions for several attributes of an item.
func (e *expression) allEqual(it item, attributes ...string) string {
	terms := make([]string, len(attributes))
	for i, n := range attributes {
		terms[i] = e.equal(n, it[n])
	}
	return strings.Join(terms, " AND ")
}

// assign is the update that sets the attributes to those of it, and removes those
// that it lacks.
func (e *expression) assign(it item, attributes ...string) string {
	var set, remove []string
	for _, n := range attributes {
		if v := it[n]; v != nil {
			set = append(set, e.name(n)+" = "+e.value(v))
		} else {
			remove = append(remove, e.name(n))
		}
	}
	var clauses []string
	if set != nil {
		clauses = append(clauses, "SET "+strings.Join(set, ", "))
	}
	if remove != nil {
		clauses = append(clauses, "REMOVE "+strings.Join(remove, ", "))
	}
	return strings.Join(clauses, " ")
}

// projection names attributes to read.
func (e *expression) projection(attributes ...string) *string {
	aliases := make([]string, len(attributes))
	for i, n := range attributes {
		aliases[i] = e.name(n)
	}
	text := strings.Join(aliases, ", ")
	return &text
}

// valuesOrNil is the values; DynamoDB refuses an empty map.
func (e *expression) valuesOrNil() item {
	if len(e.values) == 0 {
		return nil
	}
	return e.values
}
