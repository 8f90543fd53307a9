import { LITELLM_BARE_NAMES, litellmProvider } from '../../providers/litellm-names.ts';
import { providerNamed, providerOf, PROVIDERS } from '../../providers/index.ts';
import { LOCAL_SERVERS } from '../../providers/local-servers.ts';
import { compileGlobs } from '../../routing/glob.ts';

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
