import * as z from 'zod';
import { litellmParamsSchema } from '../schemas.ts';
import { PLACEHOLDER_KEYS } from '../names.ts';
import { explainIssues } from '../../../../src/config/explain-issues.ts';
import { numberIn, type ForeignSecrets } from '../groups.ts';
import type { ModelFacts } from '../targets.ts';
import type { ListedDeployment } from '../model-groups.ts';
import {
  budgetOf,
  whyNoBudget,
  type ConvertedBudget,
  missingVariable,
  resolveValue,
  variableOf,
  type Environment,
  fieldsOf,
  isStated,
  type UnknownFields,
  type ImportReport,
} from './fields.ts';
import { placeDeployment, providerOfModel, type NamedModel } from './provider.ts';

type LitellmParams = z.output<typeof litellmParamsSchema>;

export interface ReadDeployment extends ListedDeployment {
  readonly budget: ConvertedBudget | null;
}

export interface ListContext {
  readonly environment: Environment;
  /** Parameters by the name of their credential. */
  readonly credentials: ReadonlyMap<string, UnknownFields>;
  /** Slots of deployments that do not set any. */
  readonly maxParallel: number | null;
  /** Base URL of a provider, for deployments without one. */
  readonly baseOf: (named: string) => string | undefined;
  readonly goesByTags: boolean;
  readonly secrets: ForeignSecrets;
  readonly report: ImportReport;
}

const KNOWN: readonly string[] = Object.keys(litellmParamsSchema.shape);

/** Parameters that are text, also if they look like numbers. */
const TEXTS: ReadonlySet<string> = new Set([
  'model',
  'custom_llm_provider',
  'api_base',
  'budget_duration',
  'aws_region_name',
]);

const PRICED = ['input_cost_per_token', 'output_cost_per_token'] as const;

const PRICED_CACHE = ['cache_read_input_token_cost', 'cache_creation_input_token_cost'] as const;

/** Fields that decide where calls go or who pays for them, and that cannot be converted. */
const STEERING: Readonly<Record<string, string>> = {
  deployment_id: 'replaces model; write the deployment there, as in azure/my-deployment',
  use_litellm_proxy: 'sends calls to another proxy; write its address as `api_base`',
  organization: 'chooses the organization that pays, and Headgate sends no such header',
  extra_headers: 'adds headers to each call, which Headgate does not do',
  headers: 'adds headers to each call, which Headgate does not do',
  extra_body: 'adds fields to each call, which Headgate does not do',
  service_tier: 'chooses the service tier of each call, which Headgate leaves to callers',
  mock_response: 'answers without a call, and Headgate always calls its upstreams',
  azure_ad_token: 'is a token that Headgate does not send; use a key of the resource',
  client_secret: 'signs in at Entra, which Headgate does not do; use a key of the resource',
  aws_access_key_id: 'signs calls, which Headgate does not do; use a Bedrock API key as `api_key`',
  aws_profile_name: 'signs calls, which Headgate does not do; use a Bedrock API key as `api_key`',
  aws_role_name: 'signs calls, which Headgate does not do; use a Bedrock API key as `api_key`',
  aws_bedrock_runtime_endpoint: 'is an address of Bedrock; write it as `api_base`',
  region_name: 'limits which calls may go there, which Headgate cannot do',
  fallbacks: 'sends calls elsewhere; write it in `router_settings.fallbacks`',
  auto_router_config: 'chooses a model by the content of a call, which Headgate does not do',
};

/** Fields that only describe a deployment, or that Headgate does not need. */
const NOT_NEEDED = new Set([
  'api_version',
  'litellm_credential_name',
  'drop_params',
  'use_in_pass_through',
]);

/** Reads the deployments of a list. One that cannot be converted is omitted, with its path. */
export function readDeployments(list: readonly unknown[], context: ListContext): ReadDeployment[] {
  return list.flatMap((entry, index) => readDeployment(entry, index, context) ?? []);
}

function readDeployment(
  entry: unknown,
  index: number,
  context: ListContext,
): ReadDeployment | null {
  const { report } = context;
  const path = `model_list[${index}]`;
  const {
    model_name: written,
    litellm_params: given,
    model_info: info,
    ...others
  } = fieldsOf(entry);
  const called = resolveValue(written, context.environment);
  if ('missing' in called) {
    report.omit(`${path}.model_name`, missingVariable(called.missing));
    return null;
  }
  const name = z.string().trim().min(1).max(200).safeParse(called.value);
  if (!name.success) {
    report.omit(`${path}.model_name`, 'expected text of 1 to 200 characters');
    return null;
  }
  const all = withCredential(fieldsOf(given), path, context);
  if (all === null) return null;
  const parts = { given: all, info: fieldsOf(info), others };
  const params = paramsOf(parts, path, context);
  if (params === null) return null;
  const steering = steeringField(all, context);
  if (steering !== null) {
    report.omit(`${path}.litellm_params.${steering.field}`, steering.message);
    return null;
  }
  const base = params.api_base ?? undefined;
  const custom = params.custom_llm_provider ?? undefined;
  const named = providerOfModel({ model: params.model, custom, base });
  if (typeof named === 'string') {
    report.omit(`${path}.litellm_params.model`, named);
    return null;
  }
  const title = name.data;
  const placed = placeDeployment(title, named, params, context.baseOf);
  if ('message' in placed) {
    report.omit(`${path}.litellm_params.${placed.path}`, placed.message);
    return null;
  }
  const usd = params.max_budget ?? null;
  const budget = usd === null ? null : budgetOf(usd, params.budget_duration ?? undefined);
  if (usd !== null && budget === null) {
    report.omit(`${path}.litellm_params.max_budget`, whyNoBudget(params.budget_duration));
    return null;
  }
  noteFields(parts, path, report);
  const { place, model } = placed;
  const { secret, isKeyless } = keyOf(params, named, { index, title, path }, context.secrets);
  return {
    at: path,
    title,
    provider: named.provider,
    name: model,
    model: title.includes('*') ? null : model,
    place: { ...place, isLocal: isKeyless },
    secret,
    facts: {
      model,
      price: priceOf({ ...parts.info, ...all, ...params }),
      publicName: baseModelOf(parts.info, context),
    },
    member: memberOf(params, context),
    budget,
    isAlone: budget !== null,
  };
}

function memberOf(
  { max_parallel_requests: slots, rpm, tpm, weight, order, stream_timeout: timeout }: LitellmParams,
  { maxParallel }: ListContext,
): NonNullable<ReadDeployment['member']> {
  return {
    limits: { max_concurrency: slots ?? maxParallel, rpm, tpm },
    ...(typeof weight === 'number' && { weight }),
    ...(typeof order === 'number' && { tier: order }),
    ...(typeof timeout === 'number' && {
      first_token_ms: Math.max(1, Math.round(timeout * 1_000)),
    }),
  };
}

interface DeploymentParts {
  /** Its parameters, including those of its credential. */
  readonly given: UnknownFields;
  readonly info: UnknownFields;
  readonly others: UnknownFields;
}

/** Adds the values of an entry's credential. Returns null, and omits the entry, if the credential does not exist. */
function withCredential(
  own: UnknownFields,
  path: string,
  { report, credentials }: ListContext,
): UnknownFields | null {
  const named = own['litellm_credential_name'];
  const credential = typeof named === 'string' ? credentials.get(named) : {};
  if (credential === undefined) {
    const message = 'names a credential that is not in `credential_list`';
    report.omit(`${path}.litellm_params.litellm_credential_name`, message);
    return null;
  }
  const { base_url: base, ...all } = { ...credential, ...own };
  // LiteLLM's other name of the field, which takes precedence.
  return base === undefined || base === null ? all : { ...all, api_base: base };
}

/** Returns the parameters of an entry, with variables resolved. null if the entry was omitted. */
function paramsOf(
  { given, info, others }: DeploymentParts,
  path: string,
  { report, environment }: ListContext,
): LitellmParams | null {
  const all: Record<string, unknown> = { ...given };
  for (const field of ['rpm', 'tpm', ...PRICED, ...PRICED_CACHE]) {
    all[field] ??= others[field] ?? info[field];
  }
  for (const field of KNOWN) {
    if (field === 'api_key' || all[field] === undefined) continue;
    const resolved = resolveValue(all[field], environment);
    if ('missing' in resolved) {
      report.omit(`${path}.litellm_params.${field}`, missingVariable(resolved.missing));
      return null;
    }
    const value = TEXTS.has(field) ? resolved.value : numberIn(resolved.value);
    all[field] = value === '' ? null : value;
  }
  const parsed = litellmParamsSchema.safeParse(all);
  if (parsed.success) return parsed.data;
  for (const error of explainIssues(parsed.error, litellmParamsSchema, all)) {
    report.omit(`${path}.litellm_params.${error.path}`, error.message);
  }
  return null;
}

function steeringField(
  given: UnknownFields,
  { goesByTags }: ListContext,
): { readonly field: string; readonly message: string } | null {
  for (const [field, message] of Object.entries(STEERING)) {
    if (isStated(given[field])) return { field, message };
  }
  if (!goesByTags || given['tags'] === undefined) return null;
  return {
    field: 'tags',
    message: 'limits which calls may go there, and Headgate ignores tags',
  };
}

/** Returns the secret for a deployment's key. Keys themselves are neither imported nor repeated. */
function keyOf(
  params: LitellmParams,
  { keyVariable, isLocal }: NamedModel,
  { index, title, path }: { readonly index: number; readonly title: string; readonly path: string },
  secrets: ForeignSecrets,
): { readonly secret: string | null; readonly isKeyless: boolean } {
  const key = params.api_key ?? undefined;
  const isOwn = (params.api_base ?? null) !== null || isLocal;
  if (key === undefined && isOwn) return { secret: null, isKeyless: isLocal };
  const variable = key === undefined ? keyVariable : variableOf(key);
  if (variable !== null) return { secret: secrets.ofVariable(variable), isKeyless: false };
  const literal = key ?? '';
  if (PLACEHOLDER_KEYS.has(literal.toLowerCase())) return { secret: null, isKeyless: isOwn };
  return { secret: secrets.ofEntry(literal, title, index, path), isKeyless: false };
}

/** Converts prices per token to prices per million tokens. */
function priceOf(fields: UnknownFields): ModelFacts['price'] {
  const perMillion = (name: string): number | undefined => {
    const value = fields[name];
    if (typeof value !== 'number') return undefined;
    // Twelve digits, because a price per token has rounding noise.
    return Number((value * 1_000_000).toPrecision(12));
  };
  const [input, output] = PRICED.map(perMillion);
  if (input === undefined && output === undefined) return undefined;
  const [read, write] = PRICED_CACHE.map(perMillion);
  return {
    input: input ?? 0,
    output: output ?? 0,
    ...(read === undefined ? {} : { cache_read: read }),
    ...(write === undefined ? {} : { cache_write: write }),
  };
}

function baseModelOf(info: UnknownFields, { environment }: ListContext): string | undefined {
  const resolved = resolveValue(info['base_model'], environment);
  if (!('value' in resolved) || typeof resolved.value !== 'string') return undefined;
  return resolved.value.split('/').at(-1);
}

/** Fields of `model_info` that are converted, or that only describe a model. */
const INFO_KNOWN = new Set([
  'id',
  'mode',
  'base_model',
  'rpm',
  'tpm',
  'version',
  'db_model',
  ...PRICED,
  ...PRICED_CACHE,
]);

/** Reports fields that are omitted although their entry is imported. */
function noteFields(
  { given, info, others }: DeploymentParts,
  path: string,
  report: ImportReport,
): void {
  const message = 'has no counterpart';
  for (const field of Object.keys(given)) {
    if (KNOWN.includes(field) || NOT_NEEDED.has(field)) continue;
    if (field !== 'ssl_verify' && !isStated(given[field])) continue;
    report.omitField(`${path}.litellm_params.${field}`, field, message);
  }
  for (const field of Object.keys(info)) {
    if (INFO_KNOWN.has(field) || /^(?:max_|supports_|litellm_)/.test(field)) continue;
    report.omitField(`${path}.model_info.${field}`, `model_info.${field}`, message);
  }
  for (const field of Object.keys(others)) {
    if (field !== 'rpm' && field !== 'tpm') {
      report.omitField(`${path}.${field}`, `.${field}`, message);
    }
  }
}
