import { CREDENTIAL_HEADERS } from '../../upstream/transfer/credentials.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { choosePath } from '../request/choose-path.ts';
import { answered, rejected, type Answered, type Rejected } from '../results/result.ts';
import type { ModelsDialect, ModelsRequest } from '../request/operation-of.ts';
import {
  forbiddenModel,
  listModels,
  unknownModel,
  type ListedModel,
  type ListedModels,
} from './list-models.ts';

/**
 * Answers a request for the models of all upstreams, or for one of them. null if the model's upstream has to answer,
 * because its list does not contain the model.
 */
export async function answerModels(
  call: AuthenticatedCall,
  { dialect, id }: ModelsRequest,
): Promise<Answered | Rejected | null> {
  if (id !== null) return answerModel(call, dialect, id);
  return listAnswer(await listModels(call), dialect, call.query);
}

/** Finds a model where a call that names it would be sent: by its prefix, by patterns, or at the default upstream. */
async function answerModel(
  call: AuthenticatedCall,
  dialect: ModelsDialect,
  id: string,
): Promise<Answered | Rejected | null> {
  const chosen = choosePath(call, 'openai', id);
  if (chosen.kind === 'rejected') return chosen;
  const { upstream, prefix } = chosen;
  const model = id.slice(prefix.length);
  const forbidden = await forbiddenModel(call, upstream, model);
  if (forbidden !== null) return forbidden;
  const { models, missing } = await listModels(call, upstream);
  const found = models.find((one) => one.model.id === model);
  // Under the requested name.
  if (found !== undefined) return modelAnswer({ ...found, id }, dialect, missing);
  return dialect === 'gemini' ? unknownModel(upstream, model) : null;
}

/** Maximum models of one page, as at Anthropic and at Gemini. Without a limit, a page has all of them. */
const PAGE_MAX = 1_000;

/** Headers that the list depends on, in addition to its URL. */
const VARY = [
  ...CREDENTIAL_HEADERS,
  'anthropic-version',
  'headgate-upstream',
  'openai-organization',
  'openai-project',
  'x-goog-api-client',
].join(', ');

const MISSING_MAX = 1_000;

/** Parameters that request a part of a list, with a dialect's own name first. */
const PARAMETERS: Record<ModelsDialect, Record<'limit' | 'after' | 'before', readonly string[]>> = {
  openai: { limit: ['limit'], after: ['after', 'after_id'], before: ['before', 'before_id'] },
  anthropic: { limit: ['limit'], after: ['after_id', 'after'], before: ['before_id', 'before'] },
  gemini: { limit: ['pageSize', 'page_size'], after: ['pageToken', 'page_token'], before: [] },
};

function listAnswer(
  { models, missing }: ListedModels,
  dialect: ModelsDialect,
  query: URLSearchParams,
): Answered | Rejected {
  const page = pageOf(models, dialect, query);
  if (page.kind === 'rejected') return page;
  const { entries, hasMore } = page;
  const last = entries.at(-1)?.id ?? null;
  const data = entries.map((one) => modelAs(one, dialect));
  if (dialect === 'gemini') {
    const next = hasMore && last !== null ? { nextPageToken: last } : {};
    return json({ models: data, ...next }, missing);
  }
  const ends = { has_more: hasMore, first_id: entries[0]?.id ?? null, last_id: last };
  // An OpenAI client treats the list as complete, and an Anthropic client ignores `object`.
  return json({ object: 'list', data, ...ends }, missing);
}

function modelAnswer(
  model: ListedModel,
  dialect: ModelsDialect,
  missing: ListedModels['missing'],
): Answered {
  return json(modelAs(model, dialect), missing);
}

function json(body: object, missing: ListedModels['missing']): Answered {
  const answer = Response.json(body, { headers: { 'cache-control': 'private', vary: VARY } });
  if (missing.size === 0) return answered(answer);
  const each = [...missing].map(([upstream, why]) => `${upstream};reason=${why}`);
  return answered(answer, { 'headgate-missing': each.join(', ').slice(0, MISSING_MAX) });
}

interface ModelsPage {
  readonly kind: 'page';
  readonly entries: readonly ListedModel[];
  /** Whether the list continues behind this page, or before it if it was requested backwards. */
  readonly hasMore: boolean;
}

function pageOf(
  models: readonly ListedModel[],
  dialect: ModelsDialect,
  query: URLSearchParams,
): ModelsPage | Rejected {
  const names = PARAMETERS[dialect];
  const limit = limitIn(query, names.limit, dialect === 'gemini');
  if (limit.kind === 'rejected') return limit;
  const after = cursorIn(query, names.after, models);
  if (after.kind === 'rejected') return after;
  const before = cursorIn(query, names.before, models);
  if (before.kind === 'rejected') return before;
  const { value: max } = limit;
  const range = models.slice((after.value ?? -1) + 1, before.value ?? models.length);
  const isBackwards = before.value !== null && after.value === null;
  // Backwards, the page is the one in front of the cursor.
  const entries = isBackwards ? range.slice(-(max ?? Infinity)) : range.slice(0, max ?? Infinity);
  return { kind: 'page', entries, hasMore: range.length > entries.length };
}

/** A parameter of a query. null if it is absent. */
interface Parameter {
  readonly kind: 'read';
  readonly value: number | null;
}

function limitIn(
  query: URLSearchParams,
  names: readonly string[],
  isZeroDefault: boolean,
): Parameter | Rejected {
  const [name, text] = parameterIn(query, names);
  if (text === '' || (isZeroDefault && text === '0')) return { kind: 'read', value: null };
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit > 0) return { kind: 'read', value: Math.min(limit, PAGE_MAX) };
  const message = `\`${name}\` must be a whole number from 1 to ${PAGE_MAX}. Omit it to get all models.`;
  return rejected({ reason: 'field_invalid', message });
}

function cursorIn(
  query: URLSearchParams,
  names: readonly string[],
  models: readonly ListedModel[],
): Parameter | Rejected {
  const [name, id] = parameterIn(query, names);
  if (id === '') return { kind: 'read', value: null };
  const at = models.findIndex((one) => one.id === id);
  if (at >= 0) return { kind: 'read', value: at };
  const message = `\`${name}\` names no model of this list, which may have changed since the previous page. Request the list again without \`${name}\`.`;
  return rejected({ reason: 'field_invalid', message });
}

function parameterIn(query: URLSearchParams, names: readonly string[]): readonly [string, string] {
  const name = names.find((each) => (query.get(each) ?? '') !== '');
  return name === undefined ? ['', ''] : [name, query.get(name) ?? ''];
}

/** Writes a model in a dialect, with the other fields of its upstream's entry. */
function modelAs(listed: ListedModel, dialect: ModelsDialect): object {
  const { id, upstream, model } = listed;
  if (dialect === 'gemini') return geminiModel(listed);
  const { created, owned_by: owner } = model;
  const base = {
    ...model,
    id,
    object: 'model',
    created: Number.isInteger(created) ? created : Math.floor(createdMs(listed) / 1_000),
    owned_by: textOr(owner, upstream.id),
  };
  if (dialect === 'openai') return base;
  const createdAt = new Date(createdMs(listed)).toISOString().replace('.000Z', 'Z');
  const { display_name: name, created_at: given } = model;
  return {
    ...base,
    type: 'model',
    display_name: textOr(name, textOr(model['displayName'], textOr(model['name'], model.id))),
    created_at: textOr(given, createdAt),
  };
}

/** When a model was created, in epoch milliseconds. 0 if its upstream does not report that. */
function createdMs({ model: { created, created_at: createdAt } }: ListedModel): number {
  const fromText = typeof createdAt === 'string' ? Date.parse(createdAt) : Number.NaN;
  const ms = typeof created === 'number' ? created * 1_000 : fromText;
  // Above it there is no valid date.
  return Number.isFinite(ms) && Math.abs(ms) <= 8.64e15 ? ms : 0;
}

/** Fields of a Gemini model that are forwarded if its upstream has them. */
const GEMINI_FIELDS = [
  'baseModelId',
  'version',
  'description',
  'inputTokenLimit',
  'outputTokenLimit',
  'supportedGenerationMethods',
  'thinking',
  'temperature',
  'maxTemperature',
  'topP',
  'topK',
];

function geminiModel({ id, model }: ListedModel): object {
  const fields = GEMINI_FIELDS.filter((name) => name in model).map((name) => [name, model[name]]);
  const displayName = textOr(model['displayName'], textOr(model['display_name'], model.id));
  return { name: `models/${id}`, displayName, ...Object.fromEntries(fields) };
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}
