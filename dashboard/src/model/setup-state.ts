import type { UpstreamInfo } from './upstream-view.ts';

/** One item of the set-up list. `todo` blocks calls, `open` is optional. */
export interface SetupItem {
  readonly title: string;
  readonly state: 'ready' | 'open' | 'todo';
  readonly says: string;
  /** Command that fixes it. */
  readonly command?: string;
  readonly afterwards?: string;
  readonly href?: string;
  readonly link?: string;
}

/** Facts of a deployment. null if one could not be read. */
export interface SetupFacts {
  readonly groups: number | null;
  readonly keys: number | null;
  readonly upstreams: readonly UpstreamInfo[] | null;
}

/** Page size of lists. Only the first page is read. */
export const PAGE_MAX = 1_000;

/** Items in the order in which people set them up. */
export function setupItems({ groups, keys, upstreams }: SetupFacts): SetupItem[] {
  return [
    {
      title: 'Admin token',
      state: 'ready',
      says: 'ADMIN_TOKEN is set, and you are signed in.',
    },
    groups === null
      ? {
          title: 'Directory',
          state: 'todo',
          says: 'The directory, which stores the configuration, is unreachable. Calls are refused until it responds.',
        }
      : { title: 'Directory', state: 'ready', says: 'The configuration is readable.' },
    ...secretItems(upstreams ?? []),
    groupsItem(groups ?? 0),
    keysItem(keys ?? 0, upstreams ?? []),
  ];
}

function secretItems(upstreams: readonly UpstreamInfo[]): SetupItem[] {
  const items = upstreams.flatMap(secretItem);
  return items.length > 0
    ? items
    : [
        {
          title: 'Provider keys',
          state: 'open',
          says: 'No provider key is stored. Callers send their own.',
          href: '/admin/upstreams?add=key',
          link: 'Store a provider key',
        },
      ];
}

function secretItem({ id, secret }: UpstreamInfo): SetupItem[] {
  if (secret === null) return [];
  const { name, is_set: isSet, fault, command, afterwards } = secret;
  return [
    isSet
      ? { title: `Key for ${id}`, state: 'ready', says: `${name} is set.` }
      : {
          title: `Key for ${id}`,
          state: 'todo',
          says: `${name} ${fault}, so calls to ${id} are refused:`,
          command,
          afterwards,
        },
  ];
}

function groupsItem(groups: number): SetupItem {
  const title = 'Groups';
  if (groups > 0) {
    return {
      title,
      state: 'ready',
      says: `${groups} configured.`,
      href: '/admin',
      link: 'View groups',
    };
  }
  return {
    title,
    state: 'open',
    says: 'No group is configured. Each provider key has an automatic group with its known or assumed limit.',
    href: '/admin/new',
    link: 'New group',
  };
}

function keysItem(keys: number, upstreams: readonly UpstreamInfo[]): SetupItem {
  const title = 'Gateway keys';
  const link = { href: '/admin/keys', link: keys > 0 ? 'View keys' : 'New key' };
  if (keys > 0) {
    return {
      title,
      state: 'ready',
      says: `${keys >= PAGE_MAX ? `${PAGE_MAX} or more` : keys} configured.`,
      ...link,
    };
  }
  const stored = upstreams.filter(({ secret }) => secret !== null).map(({ id }) => id);
  return stored.length === 0
    ? {
        title,
        state: 'open',
        says: 'No gateway key exists. Callers send their own provider keys.',
        ...link,
      }
    : {
        title,
        state: 'todo',
        says: `No gateway key exists, and ${stored.join(', ')} ${stored.length === 1 ? 'has' : 'have'} a stored key. Calls there are refused, because only gateway keys may use stored keys.`,
        ...link,
      };
}
