package amqptest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// evalServer runs in the node. It evaluates expressions, one per line, of clients
// that know the token. In an expression, Count is a function that counts the
// messages of a queue, ready or held by consumers. A quorum queue that is new, or
// elects a leader, does not know the count yet.
const evalServer = `
Token = <<"%s">>,
Quorum = fun Quorum(Pid, Tries) ->
  case ra:local_query(Pid, fun rabbit_fifo:query_messages_total/1) of
    {ok, {_, N}, _} when is_integer(N) -> N;
    _ when Tries > 0 -> timer:sleep(20), Quorum(Pid, Tries - 1)
  end
end,
Count = fun(Name) ->
  case rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, Name)) of
    {ok, Q} -> case amqqueue:get_type(Q) of
      rabbit_quorum_queue -> Quorum(amqqueue:get_pid(Q), 500);
      _ -> [{messages, N}] = rabbit_amqqueue:info(Q, [messages]), N
    end;
    _ -> 0
  end
end,
Answer = fun(Line) ->
  try
    Size = size(Token),
    <<Token:Size/binary, " ", Text/binary>> = Line,
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, V, _} = erl_eval:exprs(Exprs, [{'Count', Count}]),
    io_lib:format("ok ~0p", [V])
  catch C:R -> io_lib:format("error ~0p", [{C, R}])
  end
end,
Serve = fun Serve(S) ->
  case gen_tcp:recv(S, 0) of
    {ok, Line} -> gen_tcp:send(S, [Answer(Line), "\n"]), Serve(S);
    _ -> gen_tcp:close(S)
  end
end,
spawn(fun() ->
  {ok, L} = gen_tcp:listen(%d, [binary, {packet, line}, {active, false}, {reuseaddr, true}, {ip, {127,0,0,1}}, {recbuf, 1048576}, {buffer, 1048576}]),
  Accept = fun Accept() ->
    {ok, S} = gen_tcp:accept(L),
    P = spawn(fun() -> receive go -> Serve(S) end end),
    ok = gen_tcp:controlling_process(S, P), P ! go, Accept()
  end,
  Accept()
end).
`

// Eval has the node evaluate an Erlang expression, which is one line without the
// full stop, and returns the value as text.
func (s *Server) Eval(expr string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.evalPort))
	if err != nil {
		return "", fmt.Errorf("amqptest: %w", err)
	}
	defer func() { _ = conn.Close() }() // the answer has been read
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", fmt.Errorf("amqptest: %w", err)
	}
	if _, err := fmt.Fprintf(conn, "%s %s.\n", s.token, expr); err != nil {
		return "", fmt.Errorf("amqptest: %w", err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("amqptest: %w", err)
	}
	value, ok := strings.CutPrefix(strings.TrimSpace(line), "ok ")
	if !ok {
		return "", fmt.Errorf("amqptest: %q: %s", expr, strings.TrimSpace(line))
	}
	return value, nil
}

// Messages counts the messages of queues, ready or held by consumers. A queue
// that does not exist has none. Messages counts the queues in the given order, so
// it misses a message that moves to an earlier queue in the meantime.
func (s *Server) Messages(queues ...string) (int, error) {
	var terms []string
	for _, q := range queues {
		terms = append(terms, fmt.Sprintf(`Count(<<%q/utf8>>)`, q))
	}
	text, err := s.Eval(strings.Join(terms, " + "))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
