import type { UpstreamInfo } from './upstream-view.ts';

/** Form of an upstream. Every field is text or a checkbox. */
export interface UpstreamForm {
  readonly id: string;
  readonly base_url: string;
  /** Empty means the built-in dialect, or OpenAI's. */
  readonly dialect: string;
  /** One pattern per line. */
  readonly models: string;
  readonly openai_at: string;
  readonly anthropic_at: string;
  /** Name of the secret with the operator's key. Empty means that callers send their own keys. */
  readonly secret: string;
  /** Whether the upstream needs no key. Headgate then sends none. */
  readonly is_keyless: boolean;
  /** Operations without a slot that may use the operator's key, one per line. */
  readonly allow: string;
  /** `name = model`, one per line. */
  readonly aliases: string;
  readonly via: string;
  readonly limit_headers: string;
  readonly account_by: string;
  readonly websocket: string;
  /** Name of the secret that signs webhooks about the ends of runs. Empty if it sends none. */
  readonly webhook_secret: string;
  readonly inject_usage: boolean;
  readonly enabled: boolean;
}

/** Merge patch of changed fields. null resets a field to its default. */
export type UpstreamPatch = Readonly<Record<string, unknown>>;

export function secretNameFor(id: string): string {
  const name = id
    .trim()
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_');
  return `UPSTREAM_${name === '' ? 'MY' : name}_KEY`;
}

/** Form of the configured values, without built-in ones. null means a new upstream. */
export function formOf(upstream: UpstreamInfo | null): UpstreamForm {
  const has = upstream?.configured ?? {};
  const { auth, aliases } = has;
  const secret = typeof auth === 'object' && auth !== null && 'secret' in auth ? auth.secret : '';
  return {
    id: upstream?.id ?? '',
    base_url: textOf(has['base_url']),
    dialect: textOf(has['dialect']),
    models: Array.isArray(has['models']) ? has['models'].join('\n') : '',
    openai_at: textOf(has['openai_at']),
    anthropic_at: textOf(has['anthropic_at']),
    secret: textOf(secret),
    is_keyless: auth === 'none',
    allow: Array.isArray(has['allow']) ? has['allow'].join('\n') : '',
    aliases: Object.entries(aliases ?? {})
      .map(([name, model]) => `${name} = ${textOf(model)}`)
      .join('\n'),
    via: textOf(has['via']),
    limit_headers: textOf(has['limit_headers']) || 'auto',
    account_by: textOf(has['account_by']) || 'auto',
    websocket: textOf(has['websocket']) || 'auto',
    webhook_secret: textOf(has['webhook_secret']),
    inject_usage: has['inject_usage'] === true,
    enabled: has['enabled'] !== false,
  };
}

/** Converts changes of a form to a merge patch. Fields outside the form, such as prices, are kept. */
export function patchOf(before: UpstreamForm, after: UpstreamForm): UpstreamPatch {
  const from = documentOf(before);
  const to = documentOf(after);
  const changed = Object.entries(to).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(from[key]),
  );
  const patch = Object.fromEntries(changed);
  if ('aliases' in patch) {
    // A merge patch keeps missing entries, so removed aliases are set to null.
    const gone = Object.keys(Object(from['aliases'])).map((name) => [name, null] as const);
    patch['aliases'] = { ...Object.fromEntries(gone), ...Object(to['aliases']) };
  }
  return patch;
}

/** All values of a form. null means the default. */
function documentOf(form: UpstreamForm): Record<string, unknown> {
  const { models, aliases, allow, limit_headers, websocket, inject_usage, enabled } = form;
  return {
    base_url: form.base_url.trim() || null,
    dialect: form.dialect || null,
    models: models.trim() === '' ? null : linesOf(models),
    openai_at: form.openai_at.trim() || null,
    anthropic_at: form.anthropic_at.trim() || null,
    auth: authOf(form),
    allow: linesOf(allow),
    aliases: Object.fromEntries(linesOf(aliases).map(pairOf)),
    via: form.via.trim() || null,
    limit_headers,
    account_by: form.account_by.trim() || 'auto',
    websocket,
    webhook_secret: form.webhook_secret.trim() || null,
    inject_usage,
    enabled,
  };
}

function authOf({ secret, is_keyless: isKeyless }: UpstreamForm): unknown {
  if (isKeyless) return 'none';
  return secret.trim() === '' ? null : { secret: secret.trim() };
}

/** Differences between two states of an upstream, as lines to read. */
export function differencesOf(before: UpstreamInfo | null, after: UpstreamInfo): readonly string[] {
  const from = Object.entries(documentOf(formOf(before)));
  const to = documentOf(formOf(after));
  return from
    .filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(to[key]))
    .map(([key, value]) => `${key}: ${shown(value)} → ${shown(to[key])}`);
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return 'default';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** A line without `=` becomes a name without a model, which the server rejects with its path. */
function pairOf(line: string): readonly [string, string] {
  const at = line.indexOf('=');
  return at === -1 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
