import { expect } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { keyHeader, keyOf } from '../order/scene.ts';
import { NO_COOLDOWN } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import { call, configure, env, type CallInit } from '../support/worker.ts';

type MembersSceneGroup = NonNullable<ConfigInput['groups']>[number];
type MembersSceneUpstream = NonNullable<ConfigInput['upstreams']>[number];
type SceneMember = NonNullable<MembersSceneGroup['members']>[number];

export const CHAT = '/v1/chat/completions';

/** The gateway key that calls bring. */
export const KEY = keyHeader('team');

/** Keys of members, by the names of their secrets. */
export const SECRETS = {
  UPSTREAM_A: 'sk-of-member-a',
  UPSTREAM_B: 'sk-of-member-b',
  UPSTREAM_C: 'sk-of-member-c',
} as const;

Object.assign(env, SECRETS);

/** An upstream that is called, and another one. */
type MembersScenePosition = 'here' | 'there';

/** A member, in the words of a scene. */
export interface MemberHere extends Omit<SceneMember, 'upstream'> {
  readonly at?: MembersScenePosition;
}

interface MembersSceneSetup {
  readonly members: readonly MemberHere[];
  readonly group?: Partial<MembersSceneGroup>;
  readonly upstreams?: Partial<Record<MembersScenePosition, Partial<MembersSceneUpstream>>>;
  readonly settings?: Partial<Record<MembersScenePosition, Settings>>;
  readonly config?: ConfigInput;
  /** Other groups, by the ids of the upstreams. */
  readonly beside?: (id: MembersScene['id']) => readonly MembersSceneGroup[];
}

let scenes = 0;

/** Two upstreams, and a group whose members are there. */
export interface MembersScene {
  readonly here: Strict;
  readonly there: Strict;
  /** Name of the group. */
  readonly group: string;
  /** Id of an upstream. No other test of the file has the same. */
  id(place: MembersScenePosition): string;
  /** Where a call goes that names an upstream. */
  path(place?: MembersScenePosition, path?: string): string;
  /** Gives the group other members. */
  change(members: readonly MemberHere[]): Promise<void>;
}

export async function newScene(setup: MembersSceneSetup): Promise<MembersScene> {
  scenes += 1;
  const at = scenes;
  const id = (place: MembersScenePosition): string => `${place}-${at}`;
  const group = `members-${at}`;
  const [here, there] = await Promise.all([
    strictScope('here', setup.settings?.here ?? {}),
    strictScope('there', setup.settings?.there ?? {}),
  ]);
  const strict = { here, there };
  const places: readonly MembersScenePosition[] = ['here', 'there'];
  const { config = {} } = setup;
  const team = await keyOf('team', { allow: ['files'] });
  const change = (members: readonly MemberHere[]): Promise<void> =>
    configure({
      ...config,
      upstreams: places.map((place) => ({
        id: id(place),
        base_url: strict[place].url,
        ...setup.upstreams?.[place],
      })),
      groups: [
        {
          name: group,
          match: { models: ['m', 'm-*'] },
          members: members.map(({ at: place = 'here', ...member }) => ({
            ...member,
            upstream: id(place),
          })),
          holds: NO_COOLDOWN,
          ...setup.group,
        },
        ...(config.groups ?? []),
        ...(setup.beside?.(id) ?? []),
      ],
      keys: [team, ...(config.keys ?? [])],
    });
  await change(setup.members);
  const path: MembersScene['path'] = (place = 'here', rest = CHAT) => `/${id(place)}${rest}`;
  return { here, there, group, id, path, change };
}

/** Makes a call whose answer is read. */
export async function ask(
  scene: MembersScene,
  label: string,
  { path = scene.path(), headers = KEY, ...init }: CallInit & { readonly path?: string } = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly text: string }> {
  const json = { model: 'm', messages: [{ role: 'user', content: label }] };
  const response = await call(path, { json, ...init, headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Makes a call that is served, and tells at which member. */
export async function servedAt(...asked: Parameters<typeof ask>): Promise<string | null> {
  const { status, headers, text } = await ask(...asked);
  expect([status, status === 200 ? '' : text]).toEqual([200, '']);
  return headers.get('headgate-member');
}

/** The keys that an upstream has seen, in the order of the calls. */
export async function keysAt(strict: Strict): Promise<readonly (string | null)[]> {
  const { arrivals } = await strict.stats();
  return arrivals.map(({ key }) => key);
}
