import { LITELLM_BARE_NAMES, litellmProvider, LOCAL_SERVERS } from '../names.ts';
import {
  providerNamed,
  providerOf,
  PROVIDERS,
  DIALECT_DEFAULTS,
} from '../../../../src/providers/catalog.ts';
import { compileGlobs } from '../../../../src/routing/glob.ts';
import type * as z from 'zod';
import type { litellmParamsSchema } from '../schemas.ts';
import type { Dialect } from '../../../../src/contract/http.ts';
import type { Provider } from '../../../../src/providers/provider.ts';
import type { FieldError } from '../../../../src/config/field-error.ts';
import {
  addressProblem,
  isBuiltInId,
  placeAt,
  placeNamed,
  prefixedBy,
  type ForeignTarget,
} from '../targets.ts';

/** The provider of a deployment, and the name of its model there. */
export interface NamedModel {
  /** Id of the provider here, or the name of one that is not built in. */
  readonly provider: string;
  readonly model: string;
  /** Base URL of a provider that is not built in. */
  readonly base: string | undefined;
  /** Environment variable of its key by default. */
  readonly keyVariable: string;
  /** Whether the provider is self-hosted and needs no key. */
  readonly isLocal: boolean;
  /** Address of a region, with `*` for its name. */
  readonly regionalUrl?: string | undefined;
  /** Why a deployment without an address cannot be called. */
  readonly wantsBase?: string | undefined;
}

/** Returns the provider of a deployment, or a text why there is none. */
export function providerOfModel({
  model,
  custom,
  base,
}: {
  readonly model: string;
  readonly custom: string | undefined;
  readonly base: string | undefined;
}): NamedModel | string {
  const slash = model.indexOf('/');
  const prefix = slash === -1 ? null : model.slice(0, slash).toLowerCase();
  if (custom !== undefined) {
    const name = custom.toLowerCase();
    return known(name, prefix === name ? model.slice(slash + 1) : model, base) ?? unknownProvider();
  }
  const named = prefix === null ? null : known(prefix, model.slice(slash + 1), base);
  return named ?? bare(model, base);
}

/** Returns the provider of a prefix. null if the prefix is not the name of a provider. */
function known(name: string, model: string, base: string | undefined): NamedModel | string | null {
  const special = litellmProvider(name);
  if (special?.isReachable === false) {
    return `names the provider \`${name}\`, whose dialect Headgate does not support`;
  }
  const id = special?.id ?? (providerNamed(name) === null ? null : name);
  if (special === null && id === null) return null;
  if (model === '') return `names the provider \`${name}\` without a model; add it after the slash`;
  const isElsewhere =
    base !== undefined && id !== null && providerOf({ id: '', baseUrl: base })?.id !== id;
  return {
    provider: (isElsewhere ? special?.elsewhere : undefined) ?? id ?? name,
    model: special?.modelPrefix === undefined ? model : model.replace(special.modelPrefix, ''),
    base: special?.baseUrl,
    keyVariable: special?.keyVariable ?? variableOf(name),
    isLocal: LOCAL_SERVERS.some((server) => server.id === id),
    regionalUrl: special?.regionalUrl,
    wantsBase: special?.wantsBase,
  };
}

/** Returns the provider of a model without a prefix: by its address, or by the model. */
function bare(model: string, base: string | undefined): NamedModel | string {
  const there = base === undefined ? null : providerOf({ id: '', baseUrl: base });
  if (there !== null) return makerNamed(there.id, model);
  if (model === '*') {
    return 'sends each model to the provider in its name. Headgate does this at /v1 without a group, with the key of the caller or of the upstream';
  }
  const lower = model.toLowerCase();
  const special = LITELLM_BARE_NAMES.find(({ name }) => name.test(lower));
  if (special !== undefined) return known(special.provider, model, base) ?? unknownProvider();
  // The text before a slash names an unknown provider, and the text after it does not decide where calls go.
  const makers = PROVIDERS.filter(
    ({ models = [] }) => !lower.includes('/') && compileGlobs(models)(lower),
  );
  const [maker] = makers;
  if (maker !== undefined && makers.length === 1) return makerNamed(maker.id, model);
  if (base !== undefined) return makerNamed('openai', model);
  return unknownProvider();
}

function makerNamed(provider: string, model: string): NamedModel {
  return { provider, model, base: undefined, keyVariable: variableOf(provider), isLocal: false };
}

function unknownProvider(): string {
  return 'names no provider with a known address; write one before the model, as in openai/gpt-4o, or add `api_base`';
}

function variableOf(name: string): string {
  return `${name.replace(/[^a-z0-9]+/gi, '_').toUpperCase()}_API_KEY`;
}

/**
 * Returns the target of a deployment, and its model there. A `FieldError` explains why it cannot be called.
 *
 * @param title name by which callers request the model, or a pattern of names
 * @param baseOf returns the base URL of a provider for deployments without one
 */
export function placeDeployment(
  title: string,
  { provider, model, base: usual, regionalUrl, wantsBase }: NamedModel,
  params: z.output<typeof litellmParamsSchema>,
  baseOf: (named: string) => string | undefined,
): { readonly place: ForeignTarget; readonly model: string } | FieldError {
  const name = params.custom_llm_provider ?? params.model.split('/')[0] ?? '';
  const own = params.api_base ?? undefined;
  const base = own ?? baseOf(name.toLowerCase());
  const problem = base === undefined ? null : addressProblem(base);
  if (problem !== null) {
    if (own !== undefined) return { path: 'api_base', message: problem };
    const message = `uses the base URL of \`environment_variables\` or \`litellm_settings\`, which is invalid: ${problem}`;
    return { path: 'model', message };
  }
  const isRegional = base === undefined && regionalUrl !== undefined;
  const inModel = isRegional ? REGION_IN_MODEL.exec(model) : null;
  const region = isRegional ? (params.aws_region_name ?? inModel?.[1]) : undefined;
  if (region !== undefined && !/^[a-z0-9-]{4,32}$/.test(region)) {
    return { path: 'aws_region_name', message: 'expected the name of a region' };
  }
  const address = region === undefined ? (base ?? usual) : regionalUrl?.replace('*', region);
  const isNowhere = address === undefined && wantsBase !== undefined;
  const place = isNowhere ? null : placeOfProvider(provider, address);
  if (place === null) {
    const message = wantsBase ?? 'names no provider with a known address; add `api_base`';
    return { path: 'model', message };
  }
  const prefix = prefixOf(title);
  return {
    place: prefix === null ? place : prefixedBy(prefix, place),
    model: inModel?.[2] ?? model,
  };
}

/** A region in front of a model, as in `eu-west-1/some.model`. */
const REGION_IN_MODEL = /^([a-z]{2}(?:-[a-z]+)+-\d)\/(.+)$/;

/** Returns the target of a provider's models. null if it has no address and the document has none. */
function placeOfProvider(provider: string, address: string | undefined): ForeignTarget | null {
  const local = LOCAL_SERVERS.find(({ id }) => id === provider);
  const own = providerNamed(provider);
  const dialect = local?.dialect ?? own?.dialect ?? 'openai';
  const base = address ?? local?.baseUrl;
  const place = base === undefined ? placeNamed(provider) : placeAt(hostOf(base, own), dialect);
  if (place === null) return null;
  const { upstream } = place;
  // A base URL as SDKs use it: routes follow it directly, whatever its path is.
  const beginsAtHost = dialect === 'openai' && new URL(place.base).pathname === '/';
  return {
    ...place,
    ...(upstream !== undefined && beginsAtHost ? { upstream: { ...upstream, openai_at: '' } } : {}),
    openaiBase: dialect === 'openai' ? place.openaiBase : openaiBelow(place),
  };
}

/** Dialects whose servers also have the same models at OpenAI-shaped routes, below any address. */
const OPENAI_TOO: readonly Dialect[] = ['azure', 'ollama'];

function openaiBelow({ base, dialect }: ForeignTarget): string | null {
  const at = DIALECT_DEFAULTS[dialect].openaiAt;
  if (at === null || !OPENAI_TOO.includes(dialect)) return null;
  return base.endsWith(at) ? base : `${base}${at}`;
}

/**
 * Removes `/openai` and the path after it from an address of Azure, because the API of a resource begins at its host.
 */
function hostOf(base: string, own: Provider | null): string {
  const { origin, host, pathname } = new URL(base);
  if (own?.dialect !== 'azure' || own.hosts?.test(host) !== true) return base;
  return `${origin}${pathname.replace(/\/openai(?:\/.*)?$/, '')}`;
}

/** Returns the id before a pattern of models, which Headgate removes. null if there is none, or for a built-in id. */
function prefixOf(title: string): string | null {
  const prefix = /^([a-z0-9][a-z0-9-]*)\/.*\*/.exec(title)?.[1];
  return prefix === undefined || isBuiltInId(prefix) ? null : prefix;
}
