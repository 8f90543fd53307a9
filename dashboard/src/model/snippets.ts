/** The address that the recipes of docs/clients.md stand for. */
const EXAMPLE = 'https://headgate.example.workers.dev';

/**
 * A tested recipe for this very address. Those in TypeScript take the address as a parameter, which is
 * put in its place.
 */
export function forAddress(recipe: string, origin: string): string {
  return recipe
    .replaceAll(EXAMPLE, origin)
    .replaceAll('headgateUrl: string, ', '')
    .replaceAll(/`\$\{headgateUrl\}([^`$]*)`/g, `'${origin}$1'`)
    .trimEnd();
}

/** The call of the OpenAI SDK for Python. */
export function pythonFor(origin: string): string {
  return `from openai import OpenAI

client = OpenAI(base_url="${origin}/openai/v1")  # the key is in OPENAI_API_KEY
answer = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`;
}

/** The same by hand, with what Headgate says of it. */
export function curlFor(origin: string): string {
  return `curl -i ${origin}/openai/v1/chat/completions \\
  -H "Authorization: Bearer $OPENAI_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}]}'`;
}
