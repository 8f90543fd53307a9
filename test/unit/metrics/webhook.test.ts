/** A warning on its way to a receiver, checked by a receiver that others wrote. */
import OpenAI from 'openai';
import { describe, expect, it, vi } from 'vitest';
import type { Warning } from '../../../src/contract/attention.ts';
import type { WebhookConfig } from '../../../src/contract/config/config.ts';
import {
  deliverWarning,
  testWebhook,
  type WebhookDependencies,
} from '../../../src/runtime/webhook.ts';

const WARNING: Warning = {
  id: '0f8e',
  at: '2026-11-20T10:00:00.000Z',
  kind: 'near_limit',
  group: 'shared',
  partition: null,
  message: '4 of 5 slots have been in use for a minute.',
  figures: { in_use: 4, limit: 5, queued: 2 },
};

const RAW_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

const TARGET: WebhookConfig = {
  url: 'https://ops.example/hook?key=hidden',
  secret: 'WEBHOOK_SECRET',
  format: 'generic',
  kinds: null,
};

interface WebhookSent {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly redirect: string | undefined;
}

/** A receiver that answers with these statuses, one after the other; 0: the connection breaks. */
function receiver(statuses: readonly number[], changes: Partial<WebhookDependencies> = {}) {
  const sent: WebhookSent[] = [];
  const pauses: number[] = [];
  const given = [...statuses];
  const all: WebhookDependencies = {
    target: async () => TARGET,
    secret: (name) => (name === 'WEBHOOK_SECRET' ? RAW_SECRET : null),
    allowsHttp: false,
    fetch: async (url, init) => {
      const { headers, body, redirect } = init as RequestInit & WebhookSent;
      sent.push({ url, headers, body, redirect });
      const status = given.shift() ?? 204;
      if (status === 0) throw new TypeError('refused by https://ops.example/hook?key=hidden');
      return new Response(null, { status });
    },
    pause: async (ms) => void pauses.push(ms),
    now: () => Date.now(),
    ...changes,
  };
  return { all, sent, pauses };
}

function logged(): Record<string, unknown>[] {
  return vi.mocked(console.log).mock.calls.map(([line]) => JSON.parse(line as string));
}

describe('a warning', () => {
  it('is signed so that a client of Standard Webhooks takes it', async () => {
    const { all, sent } = receiver([204]);
    await deliverWarning(WARNING, all);
    const [one] = sent;
    if (one === undefined) throw new Error('nothing was sent');
    const client = new OpenAI({ apiKey: 'none' });
    await client.webhooks.verifySignature(one.body, one.headers, RAW_SECRET);
    await expect(
      client.webhooks.verifySignature(`${one.body} `, one.headers, RAW_SECRET),
    ).rejects.toThrow(/signature/i);
    expect(JSON.parse(one.body)).toEqual({
      type: 'headgate.near_limit',
      timestamp: WARNING.at,
      data: {
        id: '0f8e',
        kind: 'near_limit',
        group: 'shared',
        partition: null,
        message: WARNING.message,
        figures: WARNING.figures,
      },
    });
    expect(one.headers['webhook-id']).toBe(WARNING.id);
    expect(one.redirect).toBe('manual');
  });

  it('is signed with a secret of plain text too', async () => {
    const { all, sent } = receiver([204], { secret: () => 'just some text' });
    await deliverWarning(WARNING, all);
    const [one] = sent;
    const client = new OpenAI({ apiKey: 'none' });
    await client.webhooks.verifySignature(one?.body ?? '', one?.headers ?? {}, 'just some text');
    expect(sent).toHaveLength(1);
  });

  it.each([
    ['that is received', [200], 1],
    ['while the receiver fails', [500, 503, 200], 3],
    ['whose connection breaks', [0, 0, 204], 3],
    ['that is asked to come later', [429, 204], 2],
    ['that is never received', [500, 500, 500, 500, 200], 4],
    ['that is not wanted', [410, 200], 1],
    ['that is sent elsewhere', [302, 200], 1],
  ])('%s is tried as often as it makes sense', async (_which, statuses, attempts) => {
    const log = vi.spyOn(console, 'log').mockReturnValue();
    const { all, sent, pauses } = receiver(statuses);
    await deliverWarning(WARNING, all);
    expect(sent).toHaveLength(attempts);
    expect(pauses).toEqual([2_000, 10_000, 60_000].slice(0, attempts - 1));
    expect(new Set(sent.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    log.mockRestore();
  });

  it.each([
    [
      'the secret is not set',
      { secret: (): null => null },
      'the secret `WEBHOOK_SECRET` is not set',
    ],
    [
      'the secret is no base64',
      { secret: (): string => 'whsec_no base64!' },
      'the secret `WEBHOOK_SECRET` has no valid base64 after `whsec_`',
    ],
    [
      'the secret is empty',
      { secret: (): string => 'whsec_' },
      'the secret `WEBHOOK_SECRET` has no valid base64 after `whsec_`',
    ],
    [
      'the address is plain http',
      { target: async () => ({ ...TARGET, url: 'http://ops.example' }) },
      'the URL does not use https',
    ],
    [
      'the directory is out of reach',
      {
        target: async () => {
          throw new RangeError('whatever');
        },
      },
      'RangeError',
    ],
  ] as const)('is not sent when %s, and the log says so', async (_when, changes, why) => {
    const log = vi.spyOn(console, 'log').mockReturnValue();
    const { all, sent } = receiver([], changes);
    await deliverWarning(WARNING, all);
    expect(sent).toEqual([]);
    expect(logged()).toEqual([
      {
        event: 'webhook_failed',
        level: 'warn',
        warning: '0f8e',
        kind: 'near_limit',
        group: 'shared',
        why,
      },
    ]);
    log.mockRestore();
  });

  it('goes over plain http where Headgate is self-hosted', async () => {
    const target = async () => ({ ...TARGET, url: 'http://10.0.0.7/hook' });
    const { all, sent } = receiver([204], { allowsHttp: true, target });
    await deliverWarning(WARNING, all);
    expect(sent.map(({ url }) => url)).toEqual(['http://10.0.0.7/hook']);
  });

  it('that is lost shows neither the address nor the secret', async () => {
    const log = vi.spyOn(console, 'log').mockReturnValue();
    const { all } = receiver([0, 0, 0, 0]);
    await deliverWarning(WARNING, all);
    const text = JSON.stringify(logged());
    expect(text).toContain('TypeError');
    expect(text).not.toMatch(/hidden|ops\.example|whsec/);
    log.mockRestore();
  });

  it('goes nowhere without a receiver', async () => {
    const { all, sent } = receiver([], { target: async () => null });
    await deliverWarning(WARNING, all);
    expect(sent).toEqual([]);
  });
});

describe('a receiver', () => {
  const reported = async (changes: Partial<WebhookConfig>, warning = WARNING) => {
    const { all, sent } = receiver([204], { target: async () => ({ ...TARGET, ...changes }) });
    await deliverWarning(warning, all);
    return sent;
  };

  it('of the format slack is told a text, unsigned without a secret', async () => {
    const [one] = await reported({ format: 'slack', secret: null });
    expect(JSON.parse(one?.body ?? '')).toEqual({
      text: '[shared] near limit: 4 of 5 slots have been in use for a minute.',
      mrkdwn: false,
    });
    expect(Object.keys(one?.headers ?? {})).toEqual(['content-type', 'user-agent']);
  });

  it('of the format slack is never made to call people or to link by what callers write', async () => {
    const partition = `<!channel> <https://evil.example|here> & ${'x'.repeat(5_000)}`;
    const [one] = await reported({ format: 'slack' }, { ...WARNING, partition });
    const { text } = JSON.parse(one?.body ?? '') as { text: string };
    expect(text).toContain(
      '[shared · &lt;!channel&gt; &lt;https://evil.example|here&gt; &amp; xxx',
    );
    expect(text).not.toMatch(/[<>]/);
    expect(text.length).toBeLessThan(400);
    expect(one?.headers).toHaveProperty('webhook-signature');
  });

  it('hears of the kinds that it wants', async () => {
    expect(await reported({ kinds: ['budget_spent'] })).toHaveLength(0);
    expect(await reported({ kinds: ['budget_spent', 'near_limit'] })).toHaveLength(1);
  });
});

describe('a test', () => {
  it('is signed as a warning is, goes once, and tells how the answer begins', async () => {
    const { all, sent } = receiver([]);
    const answer = new Response(`no_service ${'y'.repeat(10_000)}`, { status: 503 });
    const tested = await testWebhook(TARGET, {
      ...all,
      fetch: async (url, init) => {
        await all.fetch(url, init);
        return answer;
      },
    });
    expect(tested).toMatchObject({ status: 503, error: 'status 503' });
    expect(tested.answer).toMatch(/^no_service y+$/);
    expect(tested.answer).toHaveLength(300);
    expect(sent).toHaveLength(1);
    const [one] = sent;
    const client = new OpenAI({ apiKey: 'none' });
    await client.webhooks.verifySignature(one?.body ?? '', one?.headers ?? {}, RAW_SECRET);
    expect(JSON.parse(one?.body ?? '')).toMatchObject({ type: 'headgate.test' });
    expect(one?.redirect).toBe('manual');
  });

  it('that arrives says so, and one that cannot be sent says why, without the address', async () => {
    expect(await testWebhook(TARGET, receiver([204]).all)).toEqual({
      status: 204,
      answer: '',
      error: null,
    });
    const broken = await testWebhook(TARGET, receiver([0]).all);
    expect(broken).toEqual({
      status: null,
      answer: '',
      error: 'the receiver could not be reached (TypeError)',
    });
    const slow = async () => {
      throw new DOMException('of https://ops.example/hook?key=hidden', 'TimeoutError');
    };
    expect(await testWebhook(TARGET, receiver([], { fetch: slow }).all)).toMatchObject({
      error: 'the receiver did not answer within 10 s',
    });
    const unset = receiver([], { secret: () => null });
    expect(await testWebhook(TARGET, unset.all)).toMatchObject({
      error: 'the secret `WEBHOOK_SECRET` is not set',
    });
    expect(unset.sent).toEqual([]);
    const wrong = receiver([], { secret: () => 'whsec_?' });
    expect(await testWebhook(TARGET, wrong.all)).toMatchObject({
      error: 'the secret `WEBHOOK_SECRET` has no valid base64 after `whsec_`',
    });
  });
});
