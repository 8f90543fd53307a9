import type { UpstreamInfo } from './upstream-view.ts';

/** One thing that a deployment may lack. `todo` keeps calls from passing, `open` is a choice. */
export interface SetupItem {
  readonly title: string;
  readonly state: 'ready' | 'open' | 'todo';
  readonly says: string;
  /** The line that mends it. */
  readonly command?: string;
  /** The step after that line. */
  readonly afterwards?: string;
  readonly href?: string;
  readonly link?: string;
}

/** Facts of a deployment. Null: it could not be read. */
export interface SetupFacts {
  readonly groups: number | null;
  readonly keys: number | null;
  readonly upstreams: readonly UpstreamInfo[] | null;
}

/** Maximum of entries on a page of a list; one page is read. */
export const PAGE_MAX = 1_000;

/** Lists what is ready and what is missing, in the order in which people set it up. */
export function setupItems({ groups, keys, upstreams }: SetupFacts): SetupItem[] {
  return [
    {
      title: 'Admin token',
      state: 'ready',
      says: 'ADMIN_TOKEN is set: you are signed in.',
    },
    groups === null
      ? {
          title: 'Directory',
          state: 'todo',
          says: 'The directory, which holds the configuration, cannot be reached. Calls are refused until it answers.',
        }
      : { title: 'Directory', state: 'ready', says: 'The configuration can be read.' },
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
          says: 'None is stored here: callers bring their own.',
          href: '/admin/upstreams?add=key',
          link: 'Store one',
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
      link: 'See them',
    };
  }
  return {
    title,
    state: 'open',
    says: 'None is configured: every provider key has an automatic group, with its known or assumed limit.',
    href: '/admin/new',
    link: 'Make a group',
  };
}

function keysItem(keys: number, upstreams: readonly UpstreamInfo[]): SetupItem {
  const title = 'Gateway keys';
  const link = { href: '/admin/keys', link: keys > 0 ? 'See them' : 'Make a key' };
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
        says: 'There is none: callers bring their own provider keys.',
        ...link,
      }
    : {
        title,
        state: 'todo',
        says: `There is none, and ${stored.join(', ')} ${stored.length === 1 ? 'has' : 'have'} a stored key: calls there are refused, because nobody but a gateway key may use it.`,
        ...link,
      };
}
