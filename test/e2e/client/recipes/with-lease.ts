import { createHeadgate } from 'headgate/client';

const gate = createHeadgate({
  url: process.env['HEADGATE_URL'] ?? 'https://headgate.example.workers.dev',
  key: process.env['HEADGATE_KEY'] ?? '',
});

export async function ask(provider: string, request: object, signal?: AbortSignal) {
  const response = await gate.withLease({ group: 'glm', signal }, (lease) =>
    fetch(`${provider}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
      signal: lease.signal,
    }),
  );
  // The slot is held until the last byte is read.
  return response.text();
}
