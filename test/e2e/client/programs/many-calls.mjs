// Work as users write it, by the installed package: in Node, in a browser and in a Worker.
import { createHeadgate } from 'headgate/client';

/** Calls a provider; its answer is a stream. */
const ask = (provider, signal) =>
  fetch(`${provider}/v1/chat/completions`, {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-provider' },
    body: JSON.stringify({
      model: 'm',
      stream: true,
      messages: [{ role: 'user', content: 'Hello. [[strict chunks=3 first-byte-delay-ms=10]]' }],
    }),
  });

/** Calls so often, half of it through a limit, half as streams that are read later. Answers with how many were served. */
export async function manyCalls({ url, key, provider, count }) {
  const gate = createHeadgate({ url, key });
  const limit = gate.limit('practice');
  const whole = async () => (await ask(provider)).text();
  const streamed = async () => {
    const response = await gate.withLease({ group: 'practice', agent: 'streams' }, (lease) =>
      ask(provider, lease.signal),
    );
    return response.text();
  };
  const texts = await Promise.all(
    Array.from({ length: count }, (_, n) => (n % 2 === 0 ? limit(whole) : streamed())),
  );
  return texts.filter((text) => text.includes('[DONE]')).length;
}
