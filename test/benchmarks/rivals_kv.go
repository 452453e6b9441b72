package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/go-redis/v9"
)

// day is how long the rivals keep an answer.
const day = 24 * time.Hour

// rivalRedis are the published patterns for Redis.
type rivalRedis struct{ client *redis.Client }

// setNX takes a lock, looks for the answer, and then keeps the answer and removes the
// lock in a pipeline. The article does not look after it has the lock; without that a
// duplicate that comes after the lock was removed would run the handler again.
func (r rivalRedis) setNX(ctx context.Context, key string, isNew bool) error {
	lock, result := "idempotency:lock:"+key, "idempotency:result:"+key
	won, err := r.client.SetNX(ctx, lock, "locked", 30*time.Second).Result()
	if err != nil {
		return err
	}
	kept, err := r.client.Get(ctx, result).Result()
	if err == nil || !won {
		if won {
			err = r.client.Del(ctx, lock).Err()
		}
		return checked(err, kept, false, isNew)
	}
	if !errors.Is(err, redis.Nil) {
		return err
	}
	pipe := r.client.Pipeline()
	pipe.Set(ctx, result, answer, day)
	pipe.Del(ctx, lock)
	_, err = pipe.Exec(ctx)
	return checked(err, answer, true, isNew)
}

// claimScript is the script of the article.
var claimScript = redis.NewScript(`if redis.call('exists', KEYS[1]) == 0 then
	redis.call('hset', KEYS[1], 'state', ARGV[2])
	redis.call('expire', KEYS[1], ARGV[1])
	return 'LOCKED'
else
	return redis.call('hgetall', KEYS[1])
end`)

// script claims by a script, and keeps the answer in the same hash.
func (r rivalRedis) script(ctx context.Context, key string, isNew bool) error {
	reply, err := claimScript.Run(ctx, r.client, []string{key}, int(day.Seconds()), "STARTED").Result()
	if err != nil {
		return err
	}
	if fields, ok := reply.([]any); ok {
		kept := ""
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] == "body" {
				kept, _ = fields[i+1].(string)
			}
		}
		return checked(nil, kept, false, isNew)
	}
	err = r.client.HSet(ctx, key, "state", "COMPLETED", "status_code", 201, "body", answer).Err()
	return checked(errors.Join(err, r.client.Expire(ctx, key, day).Err()), answer, true, isNew)
}

// redisPid is the process number of a server.
func redisPid(addr string) (int, error) {
	text, err := redisInfo(addr, "process_id")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// redisInfo is a field of the server's INFO.
func redisInfo(addr, field string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	text, err := client.Info(context.Background()).Result()
	if err := errors.Join(err, client.Close()); err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("INFO of Redis has no %s", field)
}

// rivalDynamo is the published pattern for DynamoDB: read, write on condition, write
// the answer.
type rivalDynamo struct{ client *dynamodb.Client }

func (r rivalDynamo) getPutUpdate(ctx context.Context, key string, isNew bool) error {
	table, id := aws.String("t"), map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}
	got, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: id, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return err
	}
	if kept, ok := got.Item["response"].(*types.AttributeValueMemberS); ok {
		return checked(nil, kept.Value, false, isNew)
	}
	if _, err = r.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, ConditionExpression: aws.String("attribute_not_exists(pk)"), Item: map[string]types.AttributeValue{
		"pk": id["pk"], "status": &types.AttributeValueMemberS{Value: "STARTED"}, "expiry": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(day).Unix(), 10)},
	}}); err != nil {
		return err
	}
	_, err = r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: table, Key: id, UpdateExpression: aws.String("SET #status = :status, #response = :response"),
		ExpressionAttributeNames:  map[string]string{"#status": "status", "#response": "response"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":status": &types.AttributeValueMemberS{Value: "COMPLETED"}, ":response": &types.AttributeValueMemberS{Value: answer}},
	})
	return checked(err, answer, true, isNew)
}

// rivalMap is the table of seen keys in memory.
type rivalMap struct {
	mu   sync.Mutex
	seen map[string]string
}

func (r *rivalMap) do(_ context.Context, key string, isNew bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, ok := r.seen[key]
	if !ok {
		kept, r.seen[key] = answer, answer
	}
	return checked(nil, kept, !ok, isNew)
}
