import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.time.Instant;
import java.util.Set;

/** Pays once, however often the request has to be sent: java Pay.java URL KEY [SECONDS] */
class Pay {
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /**
     * Sends the body under the key until there is a final answer. It gives up after
     * patience; the same key may be used later.
     */
    static HttpResponse<String> post(URI url, String key, String body, Duration timeout, Duration patience)
            throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(url) // the same key and bytes each time
                .timeout(timeout)
                .header("Content-Type", "application/json")
                .header("Idempotency-Key", key)
                .POST(BodyPublishers.ofString(body))
                .build();
        Instant giveUp = Instant.now().plus(patience);
        for (long pause = 200;; pause = Math.min(pause * 2, 10_000)) {
            long after = 0;
            try {
                HttpResponse<String> answer = CLIENT.send(request, BodyHandlers.ofString());
                if (Instant.now().isAfter(giveUp) || !mayChange(answer)) {
                    return answer;
                }
                after = answer.headers().firstValue("Retry-After").filter(s -> s.matches("\\d{1,9}")).map(Long::parseLong).orElse(0L);
            } catch (IOException lost) { // no answer: nobody knows whether it happened
                if (Instant.now().isAfter(giveUp)) {
                    throw lost;
                }
            }
            Thread.sleep(Math.max(after * 1000, (long) (pause * (0.5 + Math.random() / 2))));
        }
    }

    /** Reports whether the same request can get another answer later. */
    static boolean mayChange(HttpResponse<?> answer) {
        if (answer.headers().firstValue("Idempotent-Replayed").or(() -> answer.headers().firstValue("Semel-Outcome")).isPresent()) {
            return false;
        }
        int status = answer.statusCode();
        return Set.of(408, 425, 429, 502, 503, 504).contains(status)
                || status >= 400 && status < 500 && answer.headers().firstValue("Retry-After").isPresent();
    }

    public static void main(String[] args) throws Exception {
        long seconds = args.length > 2 ? Long.parseLong(args[2]) : 10;
        HttpResponse<String> answer = post(URI.create(args[0]), args[1], "{\"cents\": 4200}", Duration.ofSeconds(seconds), Duration.ofMinutes(2));
        System.out.println(answer.statusCode() + " " + answer.headers().firstValue("Idempotent-Replayed").orElse("false") + " " + answer.body());
    }
}
