using System.Net.Http.Headers;
using System.Net.Http.Json;

// The default timeout of 100 s is shorter than the time for which a call may wait.
using var client = new HttpClient { Timeout = TimeSpan.FromMinutes(5) };
client.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", args[1]);
var request = new HttpRequestMessage(HttpMethod.Post, args[0] + "/openai/v1/chat/completions")
{
    Content = JsonContent.Create(new
    {
        model = "gpt-4o-mini",
        stream = true,
        messages = new[] { new { role = "user", content = "How much water does the canal take?" } },
    }),
};
using var response = await client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead);
response.EnsureSuccessStatusCode();
using var reader = new StreamReader(await response.Content.ReadAsStreamAsync());
while (await reader.ReadLineAsync() is { } line) Console.WriteLine(line);
