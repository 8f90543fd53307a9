// Forms of real clients go through a group that matches by model, byte for byte, before an upstream that counts.
import { afterAll, beforeAll, expect, it, test } from 'vitest';
import { bytesOf, CLIENT_FORMS } from '../../support/client-forms.ts';
import { NO_COOLDOWN, nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure } from '../support/worker.ts';

const GATEWAY_KEY = 'hg_of-the-uploading-clients';
const PATH = '/audio/v1/audio/transcriptions';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('client-forms');
  const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
  // The operator pays, so that the model has to be the one that the upstream reads.
  await configure({
    upstreams: [{ id: 'audio', base_url: strict.url, auth: { secret: 'UPSTREAM_TEST_KEY' } }],
    keys: [{ id: 'uploads', hash: json.hash as string }],
    groups: [
      {
        name: 'whisper',
        match: { models: ['whisper-1'] },
        limits: { max_concurrency: 4 },
        holds: NO_COOLDOWN,
      },
    ],
  });
});

afterAll(nothingLeaks);

const send = (type: string, body: BodyInit): Promise<Response> =>
  call(PATH, {
    method: 'POST',
    body,
    headers: { 'headgate-key': GATEWAY_KEY, 'content-type': type, 'x-strict-echo': '1' },
  });

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).toHex();
}

test.each(CLIENT_FORMS)('$client ($source)', async (form) => {
  const bytes = bytesOf(form);
  const response = await send(form.type, bytes);
  expect(await response.json()).toMatchObject({
    headers: { 'content-type': form.type },
    bodyBytes: bytes.length,
    sha256: await sha256(bytes),
  });
  expect(response.headers.get('headgate-groups')).toBe('whisper');
});

it('is rejected with a reason in the dialect of the caller if parsers may read another model', async () => {
  const before = (await strict.stats()).total;
  const type = 'multipart/form-data; boundary=B';
  const part = (name: string, value: string): string =>
    `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const text = `${part('language', 'de')}${part('model', 'whisper-1')}--B--\r\n`;
  const field = 'name="language"';
  const cases: [string, string, string][] = [
    [type, text.replace(field, 'name="model"'), 'The body names its model twice'],
    [
      type,
      text.replace(field, 'name="%6dodel"'),
      'the headers of a part can be read in several ways',
    ],
    [`${type}; boundary=other`, text, 'its content type names several boundaries'],
    [`${type}, application/json`, text, 'it has several content types'],
  ];
  for (const [contentType, body, why] of cases) {
    const response = await send(contentType, body);
    expect(response.status).toBe(400);
    expect(response.headers.get('headgate-reason')).toBe('body_unreadable');
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).toContain(why);
  }
  expect((await strict.stats()).total).toBe(before);
});
