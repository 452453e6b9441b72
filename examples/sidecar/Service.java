import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** A service that books payments: java Service.java PORT. No line of it knows Semel. */
class Service {
    public static void main(String[] args) throws Exception {
        AtomicInteger payments = new AtomicInteger();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/payments", exchange -> {
            exchange.getRequestBody().readAllBytes();
            String account = exchange.getRequestHeaders().getFirst("X-Account");
            byte[] answer = ("{\"payment\": " + payments.incrementAndGet() + ", \"account\": \"" + account + "\"}").getBytes();
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(201, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.out.println("the service listens");
    }
}
