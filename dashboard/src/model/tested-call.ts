import { METHODS } from '../../../src/contract/http.ts';
import { LANES } from '../../../src/core/words/ticket.ts';

/** Form of the tester. Every field is text. */
export interface TestedForm {
  readonly model: string;
  /** Empty means chosen by model, as `/v1` does. */
  readonly upstream: string;
  readonly operation: string;
  /** Path after the base URL. It determines the operation. Empty means any path of the chosen operation. */
  readonly path: string;
  readonly method: string;
  readonly shape: string;
  /** Id of a gateway key, or a fingerprint. Never a key, because links contain the form. */
  readonly key: string;
  readonly lane: string;
  /** `name: value`, one per line. */
  readonly headers: string;
}

const FINGERPRINT = /^fp_[0-9a-f]{24}$/;

/** Headers that contain keys and must not appear in links. */
const SECRET_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'headgate-key',
  'cookie',
]);

const DEFAULTS: TestedForm = {
  model: '',
  upstream: '',
  operation: 'chat',
  path: '',
  method: 'POST',
  shape: 'openai',
  key: '',
  lane: '',
  headers: '',
};

/** Reads the form from a link. Missing fields have defaults. */
export function testedFormOf(query: Readonly<Record<string, string>>): TestedForm {
  const values = Object.keys(DEFAULTS).map((name) => [name, query[name]] as const);
  return { ...DEFAULTS, ...Object.fromEntries(values.filter(([, value]) => value !== undefined)) };
}

/** Query of a link to the form. Defaults are undefined, which removes them from the link. */
export function queryOf(form: TestedForm): Readonly<Record<string, string | undefined>> {
  const defaults = new Map<string, string>(Object.entries(DEFAULTS));
  const pairs = Object.entries(form).map(
    ([name, value]) => [name, value === defaults.get(name) ? undefined : value.trim()] as const,
  );
  return Object.fromEntries(pairs);
}

/** Whether any field differs from its default. */
export function isAsked(form: TestedForm): boolean {
  return Object.values(queryOf(form)).some((value) => value !== undefined);
}

/**
 * Errors of a form by field, found before it is put into a link. Keys are rejected here and not by the server, because
 * they must not reach the server either.
 */
export function wrongIn(form: TestedForm, keyIds: readonly string[]): Partial<TestedForm> {
  const key = form.key.trim();
  const isKnown = key === '' || FINGERPRINT.test(key) || keyIds.includes(key);
  const secret = Object.keys(headersOf(form.headers)).find((name) => SECRET_HEADERS.has(name));
  const unread = linesOf(form.headers).find((line) => !/^[^\s:]+\s*:/.test(line));
  return {
    ...(isKnown
      ? {}
      : {
          key: 'This is neither the id of a gateway key nor a fingerprint. Do not enter a key: create its fingerprint below.',
        }),
    ...(secret === undefined
      ? {}
      : {
          headers: `Remove ${secret}: it contains a key, which must not be part of a link. The tester does not split groups by it.`,
        }),
    ...(unread === undefined ? {} : { headers: 'Write one header per line: name, colon, value.' }),
  };
}

export function callOf(form: TestedForm) {
  return {
    model: form.model.trim() || null,
    upstream: form.upstream || null,
    key: form.key.trim() || null,
    operation: form.operation.trim() || 'chat',
    path: form.path.trim() || null,
    method: METHODS.find((method) => method === form.method) ?? ('POST' as const),
    shape: form.shape === 'anthropic' ? ('anthropic' as const) : ('openai' as const),
    lane: LANES.find((lane) => lane === form.lane) ?? null,
    headers: headersOf(form.headers),
  };
}

function headersOf(text: string): Record<string, string> {
  const pairs = linesOf(text).map((line) => {
    const at = line.indexOf(':');
    return [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()] as const;
  });
  return Object.fromEntries(pairs);
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}
