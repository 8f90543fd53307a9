import { explainIssues } from '../../config/explain-issues.ts';
import type { ErrorReply } from '../../contract/reasons.ts';
import { BODY_BROKEN, readOwnBody } from '../../upstream/body/bytes.ts';

/** Maximum size of a body. A report contains the headers and the error of a provider. */
const BYTES_MAX = 131_072;

export type JsonRead<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'rejected'; readonly reply: ErrorReply; readonly read: null };

/** Reads the JSON body of a request. With `isOptional`, an empty body counts as an empty object. */
export async function readJson<T>(
  request: Request,
  schema: { safeParse(value: unknown): SafeParsed<T> } & Parameters<typeof explainIssues>[1],
  isOptional = false,
): Promise<JsonRead<T>> {
  const body = await readOwnBody(request, BYTES_MAX);
  if (body.kind === 'broken') return unreadable(BODY_BROKEN);
  if (body.kind === 'too long') return unreadable(`The body is larger than ${BYTES_MAX} bytes.`);
  const text = new TextDecoder().decode(body.bytes);
  let value: unknown;
  try {
    value = isOptional && text.trim() === '' ? {} : JSON.parse(text);
  } catch {
    return unreadable('The body is not valid JSON. Send a JSON object.');
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return { kind: 'read', value: parsed.data };
  const [first] = explainIssues(parsed.error, schema, value);
  const where = first === undefined || first.path === '' ? 'the body' : first.path;
  const message = `${where}: ${first?.message ?? 'not valid'}.`;
  return { kind: 'rejected', reply: { reason: 'field_invalid', message }, read: null };
}

type SafeParsed<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly error: Parameters<typeof explainIssues>[0] };

function unreadable(message: string): JsonRead<never> {
  return { kind: 'rejected', reply: { reason: 'body_unreadable', message }, read: null };
}
