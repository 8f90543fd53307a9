import { describe, expect, it } from 'vitest';
import type { KeyHeader } from '../../../../src/contract/config/upstream.ts';
import { BUILT_IN_UPSTREAMS } from '../../../../src/providers/catalog.ts';
import { ACCOUNT_SELECTORS } from '../../../../src/providers/accounts.ts';
import {
  dropAccounts,
  dropCredentials,
  keyPlaceFor,
  placeCredentials,
  readCredentials,
} from '../../../../src/upstream/transfer/credentials.ts';

const SIGNED =
  'AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261120/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=abc';

type Bag = Record<string, string>;

describe('readCredentials', () => {
  it.each<readonly [what: string, Bag, search: string, string | null, string | null]>([
    ['openai SDK', { authorization: 'Bearer sk-proj-1' }, '', null, 'sk-proj-1'],
    ['a scheme in lower case', { authorization: 'bearer sk-1' }, '', null, 'sk-1'],
    ['anthropic SDK 1.x', { authorization: 'Bearer sk-ant-1' }, '', null, 'sk-ant-1'],
    ['anthropic SDK 0.x, curl', { 'x-api-key': 'sk-ant-1' }, '', null, 'sk-ant-1'],
    ['genai SDK', { 'x-goog-api-key': 'AIza1' }, '', null, 'AIza1'],
    ['Gemini by curl', {}, '?alt=sse&key=AIza1', null, 'AIza1'],
    ['Azure', { 'api-key': 'az1' }, '?api-version=2024-10-21', null, 'az1'],
    ['Bedrock API key', { authorization: 'Bearer ABSKQm' }, '', null, 'ABSKQm'],
    ['another scheme', { authorization: 'Basic dTpw' }, '', null, 'Basic dTpw'],
    ['nothing', {}, '', null, null],
    ['empty places', { authorization: 'Bearer ', 'x-api-key': '' }, '?key=', null, null],
    ['a gateway key as Bearer', { authorization: 'Bearer hg_1' }, '', 'hg_1', null],
    ['a gateway key as user', { authorization: `Basic ${btoa('hg_1:')}` }, '', 'hg_1', null],
    ['a gateway key as password', { authorization: `basic ${btoa('u:hg_1')}` }, '', 'hg_1', null],
    ['what is no base64', { authorization: 'Basic a' }, '', null, 'Basic a'],
    ['a gateway key as x-api-key', { 'x-api-key': 'hg_1' }, '', 'hg_1', null],
    ['a gateway key as x-goog-api-key', { 'x-goog-api-key': 'hg_1' }, '', 'hg_1', null],
    ['a gateway key as api-key', { 'api-key': 'hg_1' }, '', 'hg_1', null],
    ['a gateway key in the query', {}, '?key=hg_1', 'hg_1', null],
    ['its own header alone', { 'headgate-key': 'hg_1' }, '', 'hg_1', null],
    ['its own header, empty', { 'headgate-key': ' ' }, '', null, null],
    [
      'its own header beside the provider key',
      { 'headgate-key': 'hg_1', authorization: 'Bearer sk-1' },
      '',
      'hg_1',
      'sk-1',
    ],
    [
      'a gateway key in one place, a provider key in another',
      { authorization: 'Bearer hg_1', 'x-api-key': 'sk-ant-1' },
      '',
      'hg_1',
      'sk-ant-1',
    ],
    [
      'two gateway keys: the header wins, and neither is the provider key',
      { 'headgate-key': 'hg_1', authorization: 'Bearer hg_2' },
      '',
      'hg_1',
      null,
    ],
    [
      'two provider keys: the first place wins',
      { authorization: 'Bearer sk-1', 'x-api-key': 'sk-2' },
      '?key=sk-3',
      null,
      'sk-1',
    ],
  ])('%s', (_what, headers, search, gatewayKey, providerKey) => {
    expect(readCredentials(new Headers(headers), new URLSearchParams(search))).toMatchObject({
      gatewayKey,
      providerKey,
      sigV4: false,
    });
  });

  it.each<[string, Record<string, string>, string, boolean]>([
    ['one key', { authorization: 'Bearer sk-1' }, '', false],
    ['one key in two places', { authorization: 'Bearer sk-1', 'x-api-key': 'sk-1' }, '', false],
    ['a gateway key beside it', { authorization: 'Bearer hg_1', 'x-api-key': 'sk-1' }, '', false],
    ['two keys', { authorization: 'Bearer sk-1', 'x-api-key': 'sk-2' }, '', true],
    ['a key in the query beside it', { 'x-api-key': 'sk-1' }, '?key=sk-2', true],
    ['two keys in the query', {}, '?key=sk-1&key=sk-2', true],
    ['another scheme', { authorization: 'Token sk-1' }, '', true],
    ['a scheme written twice', { authorization: 'Bearer Bearer sk-1' }, '', true],
    ['a list', { 'x-api-key': 'sk-1,sk-2' }, '', true],
  ])('says whether the upstream may read another key: %s', (_what, headers, search, expected) => {
    const read = readCredentials(new Headers(headers), new URLSearchParams(search));
    expect(read.isAmbiguous).toBe(expected);
  });

  it.each<[string, Record<string, string>, string]>([
    ['the same key twice in one header', { authorization: 'Bearer hg_1, Bearer hg_1' }, 'hg_1'],
    ['twice in x-api-key', { 'x-api-key': 'hg_1,hg_1' }, 'hg_1'],
    ['twice in headgate-key', { 'headgate-key': 'hg_1, hg_1' }, 'hg_1'],
    ['in two headers', { authorization: 'Bearer hg_1', 'api-key': 'hg_1' }, 'hg_1'],
    ['Bearer twice', { authorization: 'Bearer Bearer hg_1' }, 'hg_1'],
    ['Bearer in x-api-key', { 'x-api-key': 'Bearer hg_1' }, 'hg_1'],
    ['Bearer in headgate-key', { 'headgate-key': 'bearer hg_1' }, 'hg_1'],
    ['in quotes', { authorization: 'Bearer "hg_1"' }, 'hg_1'],
    ['in quotes with its scheme', { authorization: '"Bearer hg_1"' }, 'hg_1'],
    ['in single quotes', { 'headgate-key': "'own-key'" }, 'own-key'],
    ['with white space', { authorization: 'bearer \t hg_1 \t' }, 'hg_1'],
  ])('reads a gateway key that is miswritten, and forwards none of it: %s', (_, given, key) => {
    const headers = new Headers(given);
    const query = new URLSearchParams();
    const credentials = readCredentials(headers, query);
    expect(credentials).toMatchObject({ gatewayKey: key, providerKey: null, fault: null });
    placeCredentials(headers, query, credentials, null);
    expect([...headers]).toEqual([]);
  });

  it.each<Record<string, string>>([
    { authorization: 'Bearer own, Bearer own' },
    { authorization: 'Bearer "own"' },
    { authorization: `Basic ${btoa('own:')}` },
    { authorization: `Basic ${btoa('user:own')}` },
    { 'x-api-key': 'Bearer own' },
    { 'api-key': '"own"' },
  ])('removes a miswritten key that headgate-key names too: %j', (given) => {
    const headers = new Headers({ 'headgate-key': 'own', ...given });
    const credentials = readCredentials(headers, new URLSearchParams());
    expect(credentials).toMatchObject({ gatewayKey: 'own', providerKey: null });
    placeCredentials(headers, new URLSearchParams(), credentials, null);
    expect([...headers]).toEqual([]);
  });

  it.each<[string, Record<string, string>]>([
    ['two gateway keys in one header', { authorization: 'Bearer hg_1, Bearer hg_2' }],
    ['two gateway keys in two headers', { authorization: 'Bearer hg_1', 'x-api-key': 'hg_2' }],
    ['another one beside headgate-key', { 'headgate-key': 'hg_1', 'api-key': 'hg_2' }],
    [
      'a gateway key beside another key in one header',
      { authorization: 'Bearer sk-1, Bearer hg_1' },
    ],
  ])('finds a fault in %s', (_, headers) => {
    expect(readCredentials(new Headers(headers), new URLSearchParams()).fault).not.toBe(null);
  });

  it.each<[string, Record<string, string>, string]>([
    ['quotes', { authorization: 'Bearer "sk-1"' }, '"sk-1"'],
    ['a second scheme', { authorization: 'Bearer Bearer sk-1' }, 'Bearer sk-1'],
    ['a list', { 'x-api-key': 'sk-1, sk-2' }, 'sk-1, sk-2'],
  ])('leaves a provider key with %s as it came', (_, given, key) => {
    const headers = new Headers(given);
    const credentials = readCredentials(headers, new URLSearchParams());
    expect(credentials).toMatchObject({ gatewayKey: null, providerKey: key, fault: null });
    placeCredentials(headers, new URLSearchParams(), credentials, null);
    expect(Object.fromEntries(headers)).toEqual(given);
  });

  it('tells a signed call, whose signature is no key', () => {
    const query = new URLSearchParams();
    expect(readCredentials(new Headers({ authorization: SIGNED }), query)).toMatchObject({
      gatewayKey: null,
      providerKey: null,
      sigV4: true,
    });
  });

  it('tells a signed URL', () => {
    const query = new URLSearchParams('X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=abc');
    expect(readCredentials(new Headers(), query).sigV4).toBe(true);
  });
});

describe('placeCredentials', () => {
  function place(
    sent: Bag,
    search: string,
    injected: { place: KeyHeader; key: string } | null | 'none',
  ): { headers: Bag; search: string } {
    const headers = new Headers({ ...sent, 'content-type': 'application/json' });
    const url = new URL(`https://upstream.example/v1${search}`);
    placeCredentials(
      headers,
      url.searchParams,
      readCredentials(headers, url.searchParams),
      injected,
    );
    const { 'content-type': contentType, ...rest } = Object.fromEntries(headers);
    expect(contentType).toBe('application/json');
    return { headers: rest, search: url.search };
  }

  it.each<readonly [what: string, Bag, search: string]>([
    ['anthropic SDK 1.x', { authorization: 'Bearer sk-ant-1' }, '?beta=true'],
    ['anthropic SDK 0.x', { 'x-api-key': 'sk-ant-1' }, '?beta=true'],
    ['genai SDK', { 'x-goog-api-key': 'AIza1' }, '?alt=sse'],
    ['Gemini by curl', {}, '?alt=sse&key=AIza1'],
    ['a query that an encoder would write otherwise', { 'api-key': 'az1' }, '?a=%20b&c=d/e'],
  ])('leaves what a caller without a gateway key sent: %s', (_what, sent, search) => {
    expect(place(sent, search, null)).toEqual({ headers: sent, search });
  });

  it.each<readonly [what: string, Bag, search: string]>([
    ['a provider key', { authorization: 'Bearer sk-1' }, ''],
    ['one in every place', { 'x-api-key': 'a', 'api-key': 'b', 'x-goog-api-key': 'c' }, '?key=d'],
    ['a gateway key', { 'headgate-key': 'hg_1', authorization: 'Basic dTpw' }, ''],
  ])('leaves nothing where none is taken: %s', (_what, sent, search) => {
    expect(place(sent, search, 'none')).toEqual({ headers: {}, search: '' });
  });

  it.each<readonly [what: string, Bag, search: string, left: Bag, leftSearch: string]>([
    [
      'beside a provider key',
      { 'headgate-key': 'hg_1', 'x-api-key': 'sk-ant-1' },
      '',
      { 'x-api-key': 'sk-ant-1' },
      '',
    ],
    [
      'in the place of another credential',
      { authorization: 'Bearer hg_1', 'x-api-key': 'sk-ant-1' },
      '',
      { 'x-api-key': 'sk-ant-1' },
      '',
    ],
    [
      'as a password',
      { 'headgate-key': 'hg_1', authorization: `Basic ${btoa('u:hg_2')}` },
      '',
      {},
      '',
    ],
    ['in the query', {}, '?key=hg_1&alt=sse', {}, '?alt=sse'],
    ['in any parameter', {}, '?token=hg_1&alt=sse&x=a%3Dhg_2', {}, '?alt=sse'],
    ['as the name of a parameter', {}, '?hg_1&alt=sse', {}, '?alt=sse'],
    [
      'in the query, beside a provider key of the same name',
      {},
      '?key=hg_1&key=AIza1',
      {},
      '?key=AIza1',
    ],
    [
      'in every place at once',
      {
        'headgate-key': 'hg_1',
        authorization: 'Bearer hg_2',
        'x-api-key': 'hg_1',
        'x-goog-api-key': 'hg_3',
        'api-key': 'hg_1',
      },
      '?key=hg_1',
      {},
      '',
    ],
    [
      'without the usual prefix',
      { 'headgate-key': 'ours', authorization: 'Bearer ours' },
      '',
      {},
      '',
    ],
  ])('takes the gateway key away %s', (_what, sent, search, left, leftSearch) => {
    expect(place(sent, search, null)).toEqual({ headers: left, search: leftSearch });
  });

  it.each<readonly [KeyHeader, Bag]>([
    ['bearer', { authorization: 'Bearer secret' }],
    ['x-api-key', { 'x-api-key': 'secret' }],
    ['x-goog-api-key', { 'x-goog-api-key': 'secret' }],
    ['api-key', { 'api-key': 'secret' }],
  ])('puts an injected key at %s, and no other credential stays', (keyPlace, left) => {
    const sent = {
      authorization: 'Bearer hg_1',
      'x-api-key': 'sk-ant-1',
      'x-goog-api-key': 'AIza1',
      'api-key': 'az1',
    };
    expect(place(sent, '?key=AIza2&alt=sse', { place: keyPlace, key: 'secret' })).toEqual({
      headers: left,
      search: '?alt=sse',
    });
  });
});

describe('keyPlaceFor', () => {
  it.each([
    ['gemini', 'gemini', 'x-goog-api-key'],
    ['gemini', 'openai', 'bearer'],
    ['vertex', 'anthropic', 'bearer'],
    ['anthropic', 'anthropic', 'x-api-key'],
    ['anthropic', 'openai', 'bearer'],
    ['deepseek', 'anthropic', 'bearer'],
    ['openai', 'openai', 'bearer'],
  ] as const)('a call to %s spoken as %s: %s', (id, shape, expected) => {
    const upstream = BUILT_IN_UPSTREAMS.find((candidate) => candidate.id === id);
    expect(upstream && keyPlaceFor(upstream, shape)).toBe(expected);
  });
});

it.each(['apikey', 'X-ApiKey', 'Helicone-Auth', 'X-Gateway-JWT', 'x-amz-signature', 'Api-Key'])(
  'what is called like a credential goes to nobody it was not sent to: %s',
  (name) => {
    const others = { 'content-type': 'c', 'idempotency-key': 'i', 'openai-project': 'p' };
    const headers = new Headers({ [name]: 's', ...others });
    const query = new URLSearchParams([
      [name, 's'],
      ['accessToken', 's'],
      ['api-version', 'v'],
    ]);
    dropCredentials(headers, query);
    expect([...headers.keys()]).toEqual(Object.keys(others));
    expect(query.toString()).toBe('api-version=v');
  },
);

describe('what says whose account a call is for is taken out', () => {
  it.each([
    'ChatGPT-Account-ID',
    'OpenAI-Organization',
    'OpenAI-Project',
    'anthropic-workspace-id',
    'X-Goog-User-Project',
    'X-HF-Bill-To',
  ])('of the headers: %s', (name) => {
    const headers = new Headers({ [name]: 'theirs', 'openai-beta': 'b' });
    dropAccounts(headers, new URLSearchParams(), ACCOUNT_SELECTORS);
    expect([...headers.keys()]).toEqual(['openai-beta']);
  });

  it('of the query, and of that nothing else', () => {
    const query = new URLSearchParams('userProject=a&%24userProject=b&alt=sse&userProject=c');
    dropAccounts(new Headers(), query, ACCOUNT_SELECTORS);
    expect(query.toString()).toBe('alt=sse');
  });
});
