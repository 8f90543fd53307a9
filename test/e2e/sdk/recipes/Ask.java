import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

public class Ask {
  public static void main(String[] args) throws Exception {
    var body = """
        {"model": "gpt-4o-mini", "stream": true,
         "messages": [{"role": "user", "content": "How much water does the canal take?"}]}""";
    var request = HttpRequest.newBuilder(URI.create(args[0] + "/openai/v1/chat/completions"))
        .header("authorization", "Bearer " + args[1])
        .header("content-type", "application/json")
        .header("headgate-max-wait", "60s")
        .timeout(Duration.ofSeconds(120))
        .POST(HttpRequest.BodyPublishers.ofString(body))
        .build();
    var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofLines());
    response.body().forEach(System.out::println);
  }
}
