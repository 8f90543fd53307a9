import type { AdminRequest } from '../../../src/admin/client.ts';
import { isolateConfig } from '../../../src/config/isolate-config.ts';
import type { Strict } from '../support/strict.ts';
import { chat, configure, env } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';

/** Upstreams `wired`, with the group `mini`, and `other`, with an automatic one; a group of everything. */
export async function configureFor(strict: Strict): Promise<void> {
  await configure({
    upstreams: [
      {
        id: 'wired',
        base_url: strict.url,
        models: ['gpt-*'],
        prices: { 'gpt-4o-mini': { input: 1, output: 1 } },
      },
      { id: 'openai', enabled: false },
      { id: 'other', base_url: strict.url },
    ],
    groups: [
      { name: 'mini', match: { models: ['gpt-4o-mini'], upstreams: ['wired'] } },
      { name: 'everything', limits: { max_concurrency: 50 } },
    ],
    // Another one, so that Headgate stays closed whatever becomes of the one that is tested.
    keys: [{ id: 'other', hash: `sha256:${'0'.repeat(64)}` }],
  });
}

type SceneNewKey = Omit<AdminRequest<'POST /keys'>['body'], 'id'>;

/** This isolate's Worker reads the directory at once, and not within seconds. */
export async function read(version: number): Promise<void> {
  await isolateConfig.forPool(env, { waitUntil: () => {} }, version);
}

/** Makes a key over the admin API. */
export async function makeKey(fields: SceneNewKey = {}, id = 'team'): Promise<string> {
  const { secret, version } = bodyOf(await asAdmin('POST /keys', { body: { id, ...fields } }));
  await read(version);
  return secret;
}

export const CHAT = '/wired/v1/chat/completions';

/** A call with a key, read to its end. */
export async function ask(secret: string, path = CHAT, headers: Record<string, string> = {}) {
  const response = await chat(path, 'keys', { headers: { 'headgate-key': secret, ...headers } });
  const text = await response.text();
  const { status } = response;
  return {
    status,
    reason: response.headers.get('headgate-reason'),
    groups: response.headers.get('headgate-groups'),
    text,
  };
}
