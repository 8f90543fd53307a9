import { isUsable, keyBytes } from './webhook.ts';

/** Maximum difference between a message's time and now. It limits how long an observer can replay a message. */
const TOLERANCE_MS = 300_000;

/** Maximum signatures that are checked. A message carries one per secret while the secret is rotated. */
const SIGNATURES_MAX = 8;

/**
 * Whether a message is signed as Standard Webhooks (standardwebhooks.com, version 1) requires. The runtime compares
 * signatures in constant time.
 */
export async function isSigned(
  headers: Headers,
  body: string,
  secret: string,
  now: number,
): Promise<boolean> {
  const id = headers.get('webhook-id') ?? '';
  const timestamp = headers.get('webhook-timestamp') ?? '';
  // Anyone can sign with an empty key.
  if (!isUsable(secret)) return false;
  if (id === '' || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp) * 1_000) > TOLERANCE_MS) return false;
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', keyBytes(secret), algorithm, false, ['verify']);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const signatures = (headers.get('webhook-signature') ?? '').split(' ').slice(0, SIGNATURES_MAX);
  for (const each of signatures) {
    const bytes = bytesOf(each);
    if (bytes !== null && (await crypto.subtle.verify('HMAC', key, bytes, signed))) return true;
  }
  return false;
}

/** Returns the bytes of a version 1 signature, otherwise null. */
function bytesOf(signature: string): Uint8Array<ArrayBuffer> | null {
  const [version, value = ''] = signature.split(',');
  if (version !== 'v1') return null;
  try {
    return Uint8Array.fromBase64(value);
  } catch {
    return null;
  }
}
