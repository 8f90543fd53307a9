import { METHODS } from '../../../src/contract/methods.ts';
import { LANES } from '../../../src/core/words/ticket.ts';

/** A call as the tester's form has it: every field a text. */
export interface TestedForm {
  readonly model: string;
  /** Empty: chosen as `/v1` does. */
  readonly upstream: string;
  readonly operation: string;
  /** Behind the base URL: what it asks for is said by it then, and no operation. Empty: any path of the operation. */
  readonly path: string;
  readonly method: string;
  readonly shape: string;
  /** Id of a gateway key, or a fingerprint. Never a key: it stands in the link. */
  readonly key: string;
  readonly lane: string;
  /** `name: value`, one a line. */
  readonly headers: string;
}

const FINGERPRINT = /^fp_[0-9a-f]{24}$/;

/** Headers that hold a key, and so may stand in no link. */
const SECRET_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'headgate-key',
  'cookie',
]);

const AS_USUAL: TestedForm = {
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

/** Reads what a link says of a call; what it leaves out is as usual. */
export function testedFormOf(query: Readonly<Record<string, string>>): TestedForm {
  const said = Object.keys(AS_USUAL).map((name) => [name, query[name]] as const);
  return { ...AS_USUAL, ...Object.fromEntries(said.filter(([, value]) => value !== undefined)) };
}

/** Writes what a link has to say of a call; undefined: it is as usual, and goes out of the link. */
export function queryOf(form: TestedForm): Readonly<Record<string, string | undefined>> {
  const usual = new Map<string, string>(Object.entries(AS_USUAL));
  const pairs = Object.entries(form).map(
    ([name, value]) => [name, value === usual.get(name) ? undefined : value.trim()] as const,
  );
  return Object.fromEntries(pairs);
}

/** Whether anything is said of a call. */
export function isAsked(form: TestedForm): boolean {
  return Object.values(queryOf(form)).some((value) => value !== undefined);
}

/**
 * Finds what is wrong with a form before it may stand in a link, by field. A key is refused here, not by the
 * server: it must not get there either.
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
          key: 'This is no id of a gateway key and no fingerprint. A key itself does not belong here: make its fingerprint below.',
        }),
    ...(secret === undefined
      ? {}
      : {
          headers: `${secret} holds a key, which must not stand in a link. Groups are not split by it here.`,
        }),
    ...(unread === undefined ? {} : { headers: 'Each line is a name, a colon and a value.' }),
  };
}

/** The form as the tester takes it. */
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
