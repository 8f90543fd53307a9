import { LITELLM_BARE_NAMES, litellmProvider } from '../../providers/litellm-names.ts';
import { providerNamed, providerOf, PROVIDERS } from '../../providers/index.ts';
import { LOCAL_SERVERS } from '../../providers/local-servers.ts';
import { compileGlobs } from '../../routing/glob.ts';

/** The provider of a deployment, and the name of its model there. */
export interface NamedModel {
  /** Id of the provider here, or the name of one that is not built in. */
  readonly provider: string;
  readonly model: string;
  /** Base URL of the provider, where it is not built in. */
  readonly base: string | undefined;
  /** Environment variable that holds its key by default. */
  readonly keyVariable: string;
  /** Whether the provider is called without a key, because people run it themselves. */
  readonly isLocal: boolean;
  /** Address of a region, `*` standing for its name. */
  readonly regionalUrl?: string | undefined;
  /** Why a deployment without an address cannot be called. */
  readonly wantsBase?: string | undefined;
}

/** Finds the provider of a deployment. A text: why there is none. */
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

/** Finds the provider of a name in front of a model. Null: the name is none of a provider. */
function known(name: string, model: string, base: string | undefined): NamedModel | string | null {
  const special = litellmProvider(name);
  if (special?.isReachable === false) {
    return `names the provider "${name}", which speaks a dialect that Headgate does not`;
  }
  const id = special?.id ?? (providerNamed(name) === null ? null : name);
  if (special === null && id === null) return null;
  if (model === '') return `names the provider "${name}", and no model; write it behind the slash`;
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

/** Finds the provider of a model that names none: by its address, or by its name. */
function bare(model: string, base: string | undefined): NamedModel | string {
  const there = base === undefined ? null : providerOf({ id: '', baseUrl: base });
  if (there !== null) return makerNamed(there.id, model);
  if (model === '*') {
    return 'calls each model at the provider of its name. Headgate does so at /v1 without a group, with the key of the caller or of the upstream';
  }
  const lower = model.toLowerCase();
  const special = LITELLM_BARE_NAMES.find(({ name }) => name.test(lower));
  if (special !== undefined) return known(special.provider, model, base) ?? unknownProvider();
  // The text before a slash names a provider, which is unknown here. The name behind it does not say where calls go.
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
  return 'names no provider with an address of its own; write one in front, as in openai/gpt-4o, or add api_base';
}

function variableOf(name: string): string {
  return `${name.replace(/[^a-z0-9]+/gi, '_').toUpperCase()}_API_KEY`;
}
