// Cloudflare Access: its tokens are believed if they are signed by the team's keys, for this application,
// and not over. Keys are made here; the team's address answers with them.
import { sign } from 'hono/jwt';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Env } from '../../../src/env.ts';
import { createAdminRoutes } from '../../../src/admin/routes.ts';
import { env } from '../support/worker.ts';

const AUD = 'a'.repeat(64);
const ALGORITHM = {
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength: 2_048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: 'SHA-256',
};

interface CloudflareAccessPair {
  readonly secret: JsonWebKey & { kid: string };
  readonly published: JsonWebKey & { kid: string };
}

async function newPair(kid: string): Promise<CloudflareAccessPair> {
  const pair = (await crypto.subtle.generateKey(ALGORITHM, true, [
    'sign',
    'verify',
  ])) as CryptoKeyPair;
  const [secret, published] = (await Promise.all([
    crypto.subtle.exportKey('jwk', pair.privateKey),
    crypto.subtle.exportKey('jwk', pair.publicKey),
  ])) as [JsonWebKey, JsonWebKey];
  return {
    secret: { ...secret, kid, alg: 'RS256' },
    published: { ...published, kid, alg: 'RS256' },
  };
}

let ours: CloudflareAccessPair;
let theirs: CloudflareAccessPair;
let teams = 0;
/** A team of its own for each test: an isolate remembers the keys of the one it asked last. */
let team = '';
let published: CloudflareAccessPair['published'][] = [];
let asked = 0;

beforeAll(async () => {
  ours = await newPair('ours');
  theirs = await newPair('theirs');
});

beforeEach(() => {
  teams += 1;
  team = `team-${teams}.cloudflareaccess.com`;
  published = [ours.published];
  asked = 0;
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input) => {
    if (input !== `https://${team}/cdn-cgi/access/certs`) throw new Error('Another address.');
    asked += 1;
    return Response.json({ keys: published });
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const inAnHour = () => Math.floor(Date.now() / 1_000) + 3_600;

const usualClaims = () => ({
  iss: `https://${team}`,
  aud: [AUD],
  email: 'ann@example.com',
  exp: inAnHour(),
});

function tokenOf(claims: object = {}, { secret }: CloudflareAccessPair = ours): Promise<string> {
  return sign({ ...usualClaims(), ...claims }, secret as never, 'RS256');
}

/** A token of the algorithm `none`, which has no signature. */
async function unsigned(): Promise<string> {
  const [, claims = ''] = (await tokenOf()).split('.');
  return `${btoa(JSON.stringify({ alg: 'none', typ: 'JWT', kid: 'ours' })).replaceAll('=', '')}.${claims}.`;
}

async function ask(
  token: string,
  more: Partial<Env> = {},
  init: RequestInit = {},
  path = '/session',
) {
  const bindings: Env = { ...env, ACCESS_TEAM_DOMAIN: team, ACCESS_AUD: AUD, ...more };
  const headers = { 'cf-access-jwt-assertion': token, ...(init.headers as Record<string, string>) };
  const request = new Request(`https://headgate.test${path}`, { ...init, headers });
  const response = await createAdminRoutes().fetch(request, bindings);
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads many shapes of answers
  return { status: response.status, json: (await response.json()) as any };
}

describe('a token of Cloudflare Access', () => {
  it.each([
    [undefined, 'viewer'],
    ['operator', 'operator'],
    ['admin', 'admin'],
    ['root', 'viewer'],
  ])('gives the role that the operator says: %s', async (role, given) => {
    const answer = await ask(await tokenOf(), role === undefined ? {} : { ACCESS_ROLE: role });
    expect(answer).toMatchObject({
      status: 200,
      json: { actor: 'access:ann@example.com', role: given, via: 'access' },
    });
  });

  it.each<[string, () => Promise<string>]>([
    ['for another application', () => tokenOf({ aud: ['b'.repeat(64)] })],
    ['of another team', () => tokenOf({ iss: 'https://other.cloudflareaccess.com' })],
    ['that is over', () => tokenOf({ exp: Math.floor(Date.now() / 1_000) - 1 })],
    ['without an end', () => tokenOf({ exp: undefined })],
    ['that is good later', () => tokenOf({ nbf: inAnHour() })],
    ['that names nobody', () => tokenOf({ email: '' })],
    [
      'signed by somebody else',
      () => tokenOf({}, { ...theirs, secret: { ...theirs.secret, kid: 'ours' } }),
    ],
    ['signed by a key that nobody knows', () => tokenOf({}, theirs)],
    [
      'signed with the public key as a password',
      () => {
        const k = btoa(JSON.stringify(ours.published)).replaceAll('=', '').replaceAll('+', '-');
        const key = { kty: 'oct', k: k.replaceAll('/', '_'), alg: 'HS256', kid: 'ours' };
        const claims = { iss: `https://${team}`, aud: AUD, email: 'x', exp: inAnHour() };
        return sign(claims, key as never, 'HS256');
      },
    ],
    ['that is not signed', () => unsigned()],
    [
      'signed with another algorithm of the key',
      async () => sign(usualClaims(), { ...ours.secret, alg: 'RS512' } as never, 'RS512'),
    ],
    ['that is none', () => Promise.resolve('a.b.c')],
  ])('opens nothing: %s', async (_what, token) => {
    expect((await ask(await token())).status).toBe(401);
  });

  it('opens nothing where Access is not set up in full', async () => {
    const token = await tokenOf();
    expect((await ask(token, { ACCESS_AUD: '' })).status).toBe(401);
    expect((await ask(token, { ACCESS_TEAM_DOMAIN: '' })).status).toBe(401);
    expect((await ask(token, { ADMIN_TOKEN: '' })).status).toBe(403);
    expect(asked).toBe(0);
  });

  it('is believed by a new key of the team, which is not asked for at every forged one', async () => {
    expect((await ask(await tokenOf())).status).toBe(200);
    expect((await ask(await tokenOf({}, theirs))).status).toBe(401);
    expect(asked).toBe(1);
    published = [ours.published, theirs.published];
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 });
    expect((await ask(await tokenOf({}, theirs))).status).toBe(200);
    expect((await ask(await tokenOf())).status).toBe(200);
    expect(asked).toBe(2);
  });

  it('opens nothing while the keys of the team are malformed, and is believed as soon as they are not', async () => {
    const right = published;
    published = 'none' as never;
    expect((await ask(await tokenOf())).status).toBe(401);
    published = right;
    expect((await ask(await tokenOf())).status).toBe(200);
    expect(asked).toBe(2);
  });

  it('is believed by a new key of the team, though the wall clock was set back by an hour', async () => {
    expect((await ask(await tokenOf())).status).toBe(200);
    published = [ours.published, theirs.published];
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 });
    expect((await ask(await tokenOf({}, theirs))).status).toBe(401);
    vi.setSystemTime(Date.now() + 61_000);
    expect((await ask(await tokenOf({}, theirs))).status).toBe(200);
  });

  it('of a browser changes something only from a page of its own; a service has no page', async () => {
    const body = { method: 'PUT', body: '{}' };
    const admin = { ACCESS_ROLE: 'admin' };
    const put = async (claims: object, headers: Record<string, string>) =>
      (
        await ask(
          await tokenOf(claims),
          admin,
          { ...body, headers: { 'content-type': 'application/json', ...headers } },
          '/groups/by-access',
        )
      ).status;
    expect(await put({}, {})).toBe(403);
    expect(await put({}, { 'headgate-admin': '1', origin: 'https://evil.test' })).toBe(403);
    expect(await put({}, { 'headgate-admin': '1', origin: 'https://headgate.test' })).toBe(201);
    expect(await put({ email: undefined, common_name: 'robot.access' }, {})).toBe(200);
    const audit = await ask(await tokenOf(), admin, {}, '/audit?limit=1');
    expect(audit.json.entries[0].actor).toBe('access:ann@example.com');
  });
});
