/** Placeholder address in the recipes of the documentation. */
const EXAMPLE = 'https://headgate.example.workers.dev';

/**
 * Puts an address into a tested recipe. TypeScript recipes take the address as a parameter, which is replaced.
 */
export function forAddress(recipe: string, origin: string): string {
  return recipe
    .replaceAll(EXAMPLE, origin)
    .replaceAll('headgateUrl: string, ', '')
    .replaceAll(/`\$\{headgateUrl\}([^`$]*)`/g, `'${origin}$1'`)
    .trimEnd();
}

export function pythonFor(origin: string): string {
  return `from openai import OpenAI

client = OpenAI(base_url="${origin}/openai/v1")  # the key is in OPENAI_API_KEY
answer = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`;
}

/** A curl call that also prints the response headers. */
export function curlFor(origin: string): string {
  return `curl -i ${origin}/openai/v1/chat/completions \\
  -H "Authorization: Bearer $OPENAI_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}]}'`;
}
