import type * as z from 'zod';
import { concurrencyGroupsSchema } from './schemas.ts';
import { providerNamed } from '../../../src/providers/catalog.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { ticked, type FieldError } from '../../../src/config/field-error.ts';
import { named, providerIdOf, refused, type Converted, type Origin } from './groups.ts';
import { placeNamed, type UpstreamInput } from './targets.ts';

// Groups of Clawith, which list models and providers.

type ConcurrencyGroupEntry = z.output<typeof concurrencyGroupsSchema>['concurrency_groups'][number];

/** Upstreams of a provider's calls, by its name in the document. */
interface ProviderUpstreams {
  readonly id: string;
  /** The upstream to create, with its address there. */
  readonly upstream?: UpstreamInput;
  /** Set if each account has a host of its own, so that one id cannot represent all of them. */
  readonly hosts?: NonNullable<Provider['hostGlobs']>;
}

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

/** Returns the upstream of a provider, by its name in that system. */
function placeOf(provider: string): ProviderUpstreams {
  const { id = providerIdOf(provider, 'clawith'), upstream } =
    placeNamed(provider, 'clawith') ?? {};
  if (upstream !== undefined) return { id, upstream };
  const hosts = providerNamed(id)?.hostGlobs;
  return { id, ...(hosts === undefined ? {} : { hosts }) };
}

/**
 * Returns what a group matches. There, a group has the calls of each of its models wherever they run, and all calls of
 * each of its providers. Here, fields narrow each other. With both models and providers, a provider therefore becomes
 * all models at its upstream.
 */
function matchOf({ models, providers }: ConcurrencyGroupEntry) {
  const places = providers.map(placeOf);
  if (models.length > 0) return { models: [...models, ...places.map(({ id }) => `${id}/*`)] };
  if (places.every(({ hosts }) => hosts === undefined)) {
    return { models, upstreams: places.map(({ id }) => id) };
  }
  return { base_urls: places.flatMap(baseUrlsOf) };
}

/** Returns the addresses of a provider. Empty if they are unknown. */
function baseUrlsOf({ id, hosts, upstream }: ProviderUpstreams): readonly string[] {
  const one = upstream?.base_url ?? providerNamed(id)?.baseUrl ?? null;
  return hosts ?? (one === null ? [] : [one]);
}

/**
 * Finds providers without an address in a group that matches by address, because another provider has a host for each
 * account.
 */
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
              'has no known address; write the group in the shape of Headgate, with `match.base_urls`',
          },
        ],
  );
}

function noteOf(provider: string): string[] {
  const { id, upstream, hosts } = placeOf(provider);
  if (upstream !== undefined) {
    return [
      `Provider \`${provider}\` became upstream \`${id}\` at ${upstream.base_url}. Headgate must be able to reach this address.`,
    ];
  }
  if (hosts !== undefined) {
    return [
      `Provider \`${provider}\` matches every upstream at ${hosts.join(', ')}. Each account has a host of its own, so add yours as upstreams.`,
    ];
  }
  if (baseUrlsOf(placeOf(provider)).length === 0) {
    return [
      `Provider \`${provider}\` has no known host. It became upstream \`${id}\`, which must exist.`,
    ];
  }
  return id === provider ? [] : [`Provider \`${provider}\` became upstream \`${id}\`.`];
}

/** Explains how an entry with models and providers was converted. */
function bothNote({ name, models, providers }: ConcurrencyGroupEntry): string[] {
  if (models.length === 0 || providers.length === 0) return [];
  const ids = providers.map((provider) => placeOf(provider).id);
  return [
    `\`${name}\` counts its models at every upstream, and every model at ${ticked(ids)}. To count its models there only, write them as \`${ids[0]}/${models[0]}\`.`,
  ];
}

/** Translates paths back to the document, for unknown providers, forbidden addresses and changed ranks. */
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
