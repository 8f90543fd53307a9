export function chat(headgateUrl: string, apiKey: string, question: string) {
  return fetch(`${headgateUrl}/my-ollama/api/chat`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: 'llama3.2', messages: [{ role: 'user', content: question }] }),
  });
}
