// Step 2, of lists of groups that name models and providers. check-config.ts lists all steps.

import type * as z from 'zod';
import { concurrencyGroupsSchema } from '../contract/config/foreign-schemas.ts';
import { providerNamed } from '../providers/index.ts';
import type { Provider } from '../providers/provider.ts';
import type { FieldError } from './field-error.ts';
import { named, providerIdOf, refused, type Converted, type Origin } from './foreign-groups.ts';
import { placeNamed, type UpstreamInput } from './foreign-targets.ts';

type ConcurrencyGroupEntry = z.output<typeof concurrencyGroupsSchema>['concurrency_groups'][number];

/** Upstreams that the calls of a provider go to, by the name that the document has for it. */
interface ProviderUpstreams {
  readonly id: string;
  /** An upstream that has to be made, at its address there. */
  readonly upstream?: UpstreamInput;
  /** Set where accounts have hosts of their own, so that one id cannot stand for all of them. */
  readonly hosts?: NonNullable<Provider['hostGlobs']>;
}

/** Turns groups that have models and providers as their members into ours. */
export function convertConcurrencyGroups(document: unknown): Converted {
  const parsed = concurrencyGroupsSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, concurrencyGroupsSchema, document);
  const entries = parsed.data.concurrency_groups;
  const errors = entries.flatMap(homeless);
  if (errors.length > 0) return { ok: false, errors };
  const converted = named(
    entries.map((entry, index): Origin => ({
      path: ['concurrency_groups', index, 'name'],
      title: entry.name,
      group: { match: matchOf(entry), limits: { max_concurrency: entry.max_concurrency } },
    })),
  );
  if (!converted.ok) return converted;
  const providers = [...new Set(entries.flatMap((entry) => entry.providers))];
  const upstreams = providers.flatMap((provider) => placeOf(provider).upstream ?? []);
  return {
    ...converted,
    config: { ...converted.config, ...(upstreams.length === 0 ? {} : { upstreams }) },
    notes: [...converted.notes, ...providers.flatMap(noteOf), ...entries.flatMap(bothNote)],
    pathOf: rollbackPath(entries, upstreams),
  };
}

/** Finds where a provider is, by its name in the system whose shape this is. */
function placeOf(provider: string): ProviderUpstreams {
  const { id = providerIdOf(provider, 'clawith'), upstream } =
    placeNamed(provider, 'clawith') ?? {};
  if (upstream !== undefined) return { id, upstream };
  const hosts = providerNamed(id)?.hostGlobs;
  return { id, ...(hosts === undefined ? {} : { hosts }) };
}

/**
 * Makes what a group matches. Models and providers are both its members there: a group has the calls of each model,
 * wherever it runs, and all calls of each provider. Here fields narrow one another, so that with both of them a
 * provider becomes all models at its upstream.
 */
function matchOf({ models, providers }: ConcurrencyGroupEntry) {
  const places = providers.map(placeOf);
  if (models.length > 0) return { models: [...models, ...places.map(({ id }) => `${id}/*`)] };
  if (places.every(({ hosts }) => hosts === undefined)) {
    return { models, upstreams: places.map(({ id }) => id) };
  }
  return { base_urls: places.flatMap(baseUrlsOf) };
}

/** Lists the addresses of a provider. Empty: nobody knows them here. */
function baseUrlsOf({ id, hosts, upstream }: ProviderUpstreams): readonly string[] {
  const one = upstream?.base_url ?? providerNamed(id)?.baseUrl ?? null;
  return hosts ?? (one === null ? [] : [one]);
}

/** Finds providers without an address beside one with hosts for each account, where the group goes by addresses. */
function homeless({ models, providers }: ConcurrencyGroupEntry, at: number): FieldError[] {
  const places = providers.map(placeOf);
  if (models.length > 0 || places.every(({ hosts }) => hosts === undefined)) return [];
  return places.flatMap((place, index) =>
    baseUrlsOf(place).length > 0
      ? []
      : [
          {
            path: `concurrency_groups[${at}].providers[${index}]`,
            message:
              'has no address that is known here; write the group in our own shape, with match.base_urls',
          },
        ],
  );
}

function noteOf(provider: string): string[] {
  const { id, upstream, hosts } = placeOf(provider);
  if (upstream !== undefined) {
    return [
      `Provider "${provider}" became the upstream "${id}" at ${upstream.base_url}, as seen from where Headgate runs.`,
    ];
  }
  if (hosts !== undefined) {
    return [
      `Provider "${provider}" is every upstream at ${hosts.join(', ')}; each account has a host of its own, so add yours as upstreams.`,
    ];
  }
  if (baseUrlsOf(placeOf(provider)).length === 0) {
    return [
      `Provider "${provider}" has no host that is known here: it is the upstream "${id}", which must be there.`,
    ];
  }
  return id === provider ? [] : [`Provider "${provider}" is the upstream "${id}".`];
}

/** Says of an entry with models and providers how it was read. */
function bothNote({ name, models, providers }: ConcurrencyGroupEntry): string[] {
  if (models.length === 0 || providers.length === 0) return [];
  const ids = providers.map((provider) => placeOf(provider).id);
  return [
    `"${name}" counts its models at every upstream, and every model at ${ids.join(', ')}. For its models there alone write them as ${ids[0]}/${models[0]}.`,
  ];
}

/** Translates paths back: providers that nobody knows, addresses that may not be called, a group with another rank. */
function rollbackPath(
  entries: readonly ConcurrencyGroupEntry[],
  upstreams: readonly UpstreamInput[],
): (path: string) => string {
  const firstWith = (id: string | undefined): string | null => {
    for (const [at, { providers }] of entries.entries()) {
      const index = providers.findIndex((provider) => placeOf(provider).id === id);
      if (index !== -1) return `concurrency_groups[${at}].providers[${index}]`;
    }
    return null;
  };
  return (path) => {
    const upstream = /^upstreams\[(\d+)\]/.exec(path)?.[1];
    if (upstream !== undefined) return firstWith(upstreams[Number(upstream)]?.id) ?? path;
    return path
      .replace(
        /^groups\[(\d+)\]\.match\.(?:upstreams|base_urls)\[(\d+)\]$/,
        'concurrency_groups[$1].providers[$2]',
      )
      .replace(/^groups\[(\d+)\](?:\.match)?$/, 'concurrency_groups[$1]')
      .replace(/^groups\[(\d+)\]\.limits\./, 'concurrency_groups[$1].');
  };
}
