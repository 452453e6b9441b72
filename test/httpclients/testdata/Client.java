import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Posts twice with the HttpClient of the JDK, which offers h2c on the first request. */
class Client {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 0; i < 2; i++) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(args[0]))
                    .header("Idempotency-Key", args[1])
                    .POST(HttpRequest.BodyPublishers.ofString("{\"cents\":4200}"))
                    .build();
            HttpResponse<String> res = client.send(request, HttpResponse.BodyHandlers.ofString());
            boolean replayed = res.headers().firstValue("Idempotent-Replayed").orElse("").equals("true");
            System.out.println("{\"status\":" + res.statusCode() + ",\"replayed\":" + replayed + "}");
        }
    }
}
