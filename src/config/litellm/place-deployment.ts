import type * as z from 'zod';
import type { litellmParamsSchema } from '../../contract/config/foreign-schemas.ts';
import type { Dialect } from '../../contract/dialect.ts';
import { DIALECT_DEFAULTS } from '../../providers/dialects.ts';
import { providerNamed } from '../../providers/index.ts';
import { LOCAL_SERVERS } from '../../providers/local-servers.ts';
import type { Provider } from '../../providers/provider.ts';
import type { FieldError } from '../field-error.ts';
import {
  addressProblem,
  isBuiltInId,
  placeAt,
  placeNamed,
  prefixedBy,
  type ForeignTarget,
} from '../foreign-targets.ts';
import type { NamedModel } from './provider-of-model.ts';

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
