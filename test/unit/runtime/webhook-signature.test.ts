import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { isSigned } from '../../../src/runtime/webhook-signature.ts';

const NOW = 1_750_000_000_000;

function headersFor(key: Uint8Array, body: string): Headers {
  const timestamp = String(NOW / 1_000);
  const signature = createHmac('sha256', key).update(`m.${timestamp}.${body}`).digest('base64');
  return new Headers({
    'webhook-id': 'm',
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  });
}

// Signatures that fit are tried where the runtime has the methods to read them: in `workers/runs/webhooks`.
it.each(['whsec_', 'whsec_!'])(
  'nothing is signed by the secret %s, which is none',
  async (secret) => {
    expect(await isSigned(headersFor(new Uint8Array(), 'x'), 'x', secret, NOW)).toBe(false);
  },
);
