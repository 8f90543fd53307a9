/** A model as an upstream lists it. Its other fields are forwarded unchanged. */
export interface Model {
  readonly id: string;
  readonly [field: string]: unknown;
}

export interface ModelPage {
  readonly models: readonly Model[];
  /** Query parameters that request the next page. null if this is the last one. */
  readonly next: Readonly<Record<string, string>> | null;
  /** Whether entries were omitted because they name no model. */
  readonly isPartial: boolean;
}

/** Maximum length of a model's id in characters. Longer ones are omitted. */
const ID_MAX = 500;

/** Models per requested page, where an upstream accepts a number. It is the maximum of Anthropic and of Gemini. */
export const PAGE_MODELS = '1000';

/**
 * Reads a page of models: OpenAI's and Anthropic's `{data}`, Gemini's and Ollama's `{models}`, and a bare array
 * (Together). null if it is none of them.
 */
export function readModelPage(json: unknown, dialect: string): ModelPage | null {
  const entries = entriesOf(json);
  if (entries === null) return null;
  const models = entries.map((one) => modelOf(one, dialect)).filter((one) => one !== null);
  if (models.length === 0 && entries.length > 0) return null;
  const isPartial = models.length < entries.length;
  return { models, next: nextOf(json, entries, dialect), isPartial };
}

function entriesOf(json: unknown): readonly unknown[] | null {
  if (Array.isArray(json)) return json;
  if (!isObject(json)) return null;
  const { data, models } = json;
  const lists = [data, models].filter((one) => Array.isArray(one));
  return lists.find((one) => one.length > 0) ?? lists[0] ?? null;
}

function modelOf(one: unknown, dialect: string): Model | null {
  if (typeof one === 'string') return isId(one) ? { id: one } : null;
  if (!isObject(one)) return null;
  const { id, name, model } = one;
  // Gemini prefixes ids with `models/`, also in the list of its OpenAI-shaped routes.
  if (isId(id)) return { ...one, id: dialect === 'gemini' ? bareName(id) : id };
  const named = [name, model].find(isId);
  return named === undefined ? null : { ...one, id: bareName(named) };
}

function bareName(name: string): string {
  return name.replace(/^models\/(?=.)/, '');
}

/** The parameters of the next page: Gemini's and Cohere's page tokens, or the last model of the page. */
function nextOf(json: unknown, entries: readonly unknown[], dialect: string): ModelPage['next'] {
  if (!isObject(json)) return null;
  const { nextPageToken, next_page_token: pageToken, has_more: hasMore, last_id: lastId } = json;
  if (isId(nextPageToken)) return { pageToken: nextPageToken, pageSize: PAGE_MODELS };
  if (isId(pageToken)) return { page_token: pageToken };
  const lastEntry = entries.at(-1);
  const last = isId(lastId) ? lastId : isObject(lastEntry) ? lastEntry['id'] : lastEntry;
  if (hasMore !== true || !isId(last)) return null;
  if (dialect === 'anthropic') return { after_id: last, limit: PAGE_MODELS };
  // OpenAI's lists continue by `after`. Servers that copy Anthropic's ignore it.
  return { after: last, after_id: last };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= ID_MAX;
}
