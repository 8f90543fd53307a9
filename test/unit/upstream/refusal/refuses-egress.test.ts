import { describe, expect, test } from 'vitest';
import { classifyRefusal } from '../../../../src/upstream/refusal/classify-refusal.ts';
import { EGRESS_FORMS, egressAnswer } from '../../../strict-upstream/egress.ts';
import { answer } from '../../providers/seen-refusal.ts';

/** Answers that say that nobody is served from where the call came, and those that only look so. */

type RefusesEgressFields = Readonly<Record<string, string>>;

/** The kind of a refusal; null: it is none. */
function kindOf(status: number, body: string, headers: RefusesEgressFields = {}): string | null {
  const given = answer({ status, body, headers: new Headers(headers) });
  return classifyRefusal(given)?.signal.kind ?? null;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const EDGE_JSON = { server: 'cloudflare', 'content-type': 'application/json; charset=utf-8' };
const TEXT = { server: 'cloudflare', 'content-type': 'text/plain; charset=UTF-8' };
const PAGE = { server: 'cloudflare', 'content-type': 'Text/HTML; charset=UTF-8' };

/** Pages, shortened where they say nothing. */
const pageOf = (title: string, body = ''): string =>
  `<!DOCTYPE html><html lang="en-US"><head><title>${title}</title></head><body>${body}</body></html>`;
const plainPage = (title: string, server: string): string =>
  `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n<hr><center>${server}</center>\r\n</body>\r\n</html>\r\n`;
const edgeJson = (status: number, code: number, fields: object = {}): string =>
  JSON.stringify({
    title: `Error ${code}`,
    status,
    error_code: code,
    cloudflare_error: true,
    ...fields,
  });

const REGION = 'Country, region, or territory not supported';

describe('the egress is refused by', () => {
  test.each<[string, number, string, RefusesEgressFields?]>([
    ['Anthropic', 403, '{"error":{"type":"forbidden","message":"Request not allowed"}}', JSON_TYPE],
    [
      'Anthropic behind a gateway',
      403,
      `{"error":{"message":${JSON.stringify('{"error":{"type":"forbidden","message":"Request not allowed"}}')},"code":403}}`,
    ],
    [
      'OpenAI',
      403,
      `{"error":{"code":"unsupported_country_region_territory","message":"${REGION}","param":null,"type":"request_forbidden"}}`,
    ],
    [
      'Gemini',
      400,
      '{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}',
    ],
    ['the edge, 1000 with 403', 403, 'error code: 1000', TEXT],
    ['the edge, 1003 with 403', 403, 'error code: 1003', TEXT],
    ['the edge, 1020 with 403', 403, 'error code: 1020\n', TEXT],
    ['the edge, 1001 with 409', 409, 'error code: 1001', TEXT],
    ['the edge, 1018 with 530', 530, 'error code: 1018', TEXT],
    [
      'the edge in JSON',
      403,
      edgeJson(403, 1010, { error_name: 'browser_signature_banned' }),
      EDGE_JSON,
    ],
    [
      'the edge in JSON that is cut off',
      403,
      edgeJson(403, 1009).replace(/}$/, ',"detail":"The o'),
      EDGE_JSON,
    ],
    ['a challenge by its header', 403, '', { 'cf-mitigated': 'challenge' }],
    ['a challenge by its header with 503', 503, '', { 'cf-mitigated': 'challenge' }],
    ['a challenge page', 403, pageOf('Just a moment...'), PAGE],
    ['a challenge page with 503', 503, pageOf('Just a moment...'), PAGE],
    [
      'a challenge page by its script',
      403,
      pageOf('', '<script>window._cf_chl_opt={}</script>'),
      PAGE,
    ],
    ['a block page', 403, pageOf('Attention Required! | Cloudflare'), PAGE],
    [
      'the page of an error',
      403,
      pageOf('Access denied | llm.test used Cloudflare to restrict access | llm.test | Cloudflare'),
      PAGE,
    ],
    [
      'a page of the operator’s with the id of the ray',
      403,
      pageOf('No', 'Cloudflare Ray ID: <b>9f1c74bde9f76c24</b>'),
      { ...PAGE, 'cf-ray': '9f1c74bde9f76c24-HKG' },
    ],
    ['a plain page of the edge', 403, plainPage('403 Forbidden', 'cloudflare'), PAGE],
    ['a page that cannot be unpacked', 403, '', { ...PAGE, 'content-encoding': 'br' }],
  ])('%s', (_, status, body, headers) => {
    expect(kindOf(status, body, headers)).toBe('egress');
  });

  test.each(EGRESS_FORMS)('the strict upstream: %s', (form) => {
    const { status, body, headers } = egressAnswer(form, 'openai');
    expect(kindOf(status, body, headers)).toBe('egress');
  });
});

describe('the egress is not refused by', () => {
  test.each<[string, string | null, number, string, RefusesEgressFields?]>([
    [
      'a key of Anthropic that may not do it',
      null,
      403,
      '{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}',
      { ...JSON_TYPE, server: 'cloudflare' },
    ],
    [
      'another 403 of that type',
      null,
      403,
      '{"error":{"type":"forbidden","message":"No such key"}}',
    ],
    [
      'a key that may not do that',
      null,
      403,
      '{"error":{"code":"forbidden","message":"Request not allowed for this key"}}',
    ],
    ['a key that is told so', null, 403, '{"error":{"type":"x","message":"Request not allowed"}}'],
    ['a mistake', null, 400, '{"error":{"type":"forbidden","message":"Request not allowed"}}'],
    ['a wrong key', null, 401, '{"error":{"type":"forbidden","message":"Request not allowed"}}'],
    [
      'a project of OpenAI’s that has not the model',
      null,
      403,
      '{"error":{"message":"Project `p` does not have access to model `m`","type":"invalid_request_error","code":"model_not_found"}}',
      { ...JSON_TYPE, server: 'cloudflare' },
    ],
    [
      'a key of Google’s',
      null,
      403,
      '{"error":{"code":403,"message":"Method doesn’t allow unregistered callers","status":"PERMISSION_DENIED"}}',
    ],
    ['what a prompt says', null, 400, '{"error":{"message":"Unknown tool: error code: 1020"}}'],
    ['a text that goes on', null, 403, 'error code: 1020 is what the user asked about'],
    ['a number that is no error of the edge', null, 403, 'error code: 10000'],
    ['a number below them', null, 403, 'error code: 999'],
    [
      'the API of Cloudflare',
      null,
      403,
      '{"success":false,"errors":[{"code":10000,"message":"Forbidden"}]}',
    ],
    ['JSON that denies it', null, 403, edgeJson(403, 1010, { cloudflare_error: false }), EDGE_JSON],
    ['JSON about another error', null, 403, edgeJson(403, 10_000), EDGE_JSON],
    [
      'JSON that only quotes it',
      null,
      403,
      JSON.stringify({ message: edgeJson(403, 1010), code: '"cloudflare_error"' }),
      EDGE_JSON,
    ],
    ['a conflict', null, 409, '{"error":{"message":"The thread is busy"}}'],
    ['a name that is not found', 'error', 530, 'error code: 1016', TEXT],
    ['a tunnel that is down', 'error', 530, 'error code: 1033', TEXT],
    ['the same in JSON', 'error', 530, edgeJson(530, 1033), EDGE_JSON],
    ['a Worker that failed', 'error', 500, 'error code: 1101', TEXT],
    ['a Worker that used up its time', 'overload', 503, 'error code: 1102', TEXT],
    ['a limit of the edge', 'unknown', 429, 'error code: 1015', TEXT],
    [
      'a limit of the edge in JSON',
      'unknown',
      429,
      edgeJson(429, 1015, { error_name: 'rate_limited' }),
    ],
    [
      'the page of a limit of the edge',
      'unknown',
      429,
      pageOf('Rate limited | llm.test | Cloudflare'),
      PAGE,
    ],
    [
      'a page without a word of the edge',
      null,
      403,
      plainPage('403 Forbidden', 'nginx/1.29.3'),
      PAGE,
    ],
    [
      'a page of the upstream with a script of the edge',
      null,
      403,
      pageOf(
        'Forbidden',
        '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>',
      ),
      PAGE,
    ],
    [
      'the page of a proxy',
      null,
      403,
      plainPage('403 Forbidden', 'nginx'),
      { 'content-type': 'text/html' },
    ],
    [
      'a page from no edge that speaks of it',
      null,
      403,
      pageOf('Just a moment...'),
      { 'content-type': 'text/html' },
    ],
    [
      'JSON that is no page',
      null,
      403,
      '{"error":"cf-error-details"}',
      { ...JSON_TYPE, server: 'cloudflare' },
    ],
    ['a header that says something else', null, 403, '', { 'cf-mitigated': 'none' }],
    ['an answer', null, 200, '', { 'cf-mitigated': 'challenge' }],
    [
      'a proxy with too much to do',
      'overload',
      503,
      plainPage('503 Service Unavailable', 'nginx'),
      PAGE,
    ],
    [
      'an edge with too much to do',
      'overload',
      503,
      plainPage('503 Service Temporarily Unavailable', 'cloudflare'),
      PAGE,
    ],
    ['a 503 that cannot be unpacked', 'overload', 503, '', { ...PAGE, 'content-encoding': 'br' }],
    [
      'a bad gateway',
      'error',
      502,
      pageOf('llm.test | 502: Bad gateway', '<div id="cf-error-details">'),
      PAGE,
    ],
    [
      'a web server that is down',
      'error',
      521,
      pageOf('llm.test | 521: Web server is down', '<div id="cf-error-details">'),
      PAGE,
    ],
    [
      'an overload in JSON',
      'overload',
      529,
      '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
      TEXT,
    ],
    [
      'another overload in JSON',
      'overload',
      503,
      '{"error":{"code":503,"status":"UNAVAILABLE"}}',
      JSON_TYPE,
    ],
    [
      'an empty account',
      'quota',
      403,
      '{"error":{"type":"billing_error","message":"No credit"}}',
      JSON_TYPE,
    ],
  ])('%s: %s', (_, kind, status, body, headers) => {
    expect(kindOf(status, body, headers)).toBe(kind);
  });
});

test('nobody waits for it, and it goes to everybody who calls that upstream', () => {
  const headers = new Headers({ 'retry-after': '30', 'cf-mitigated': 'challenge' });
  expect(classifyRefusal(answer({ status: 403, headers }))).toEqual({
    signal: { kind: 'egress', retryAfterMs: null, slotsMax: null, hints: [] },
    scope: 'upstream',
    isFinal: true,
    isOfApi: false,
  });
});
