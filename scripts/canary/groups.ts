import type * as z from 'zod';
import type { AdminClient } from '../../src/contract/admin/client.ts';
import type { groupDocumentSchema } from '../../src/contract/admin/group-routes.ts';
import type { GroupStatus } from '../../src/contract/admin/status-schemas.ts';
import {
  CANARY_GROUP_PREFIX,
  CANARY_MODEL_PREFIX,
  isCanaryGroup,
} from '../../src/config/canary-groups.ts';
import { until } from './wait.ts';

/** How long calls that were closed may take until they have left the queue. */
const EMPTY_WITHIN_MS = 10_000;

export type GroupBody = z.input<typeof groupDocumentSchema>;

/** A group that this run has made. */
export interface CanaryGroup {
  readonly name: string;
  /** The model by which calls get there. */
  readonly model: string;
}

/** A group that grants nothing: its calls wait, or are refused, and no upstream hears of them. */
export const CLOSED: GroupBody = {
  limits: { max_concurrency: 0 },
  queue: { max_length: 5_000, timeout_ms: 3_600_000 },
};

/** Names a group of a run. */
export function canaryGroup(run: string, label: string): CanaryGroup {
  const name = `${CANARY_GROUP_PREFIX}${run}-${label}`;
  return { name, model: `${CANARY_MODEL_PREFIX}${run}-${label}` };
}

/** An answer of the admin API that a canary cannot go on with. */
export class AdminRefused extends Error {
  override readonly name = 'AdminRefused';
}

/** Takes the body of an answer that went well. */
export function bodyOf<Body>(
  what: string,
  answer:
    | { readonly ok: true; readonly body: Body }
    | { readonly ok: false; readonly status: number; readonly problem: unknown },
): Body {
  if (answer.ok) return answer.body;
  const { detail } = (answer.problem ?? {}) as { detail?: string };
  throw new AdminRefused(`${what}: ${answer.status} ${detail ?? ''}`.trim());
}

/** Makes a group that no call matches but those of its model. */
export async function makeGroup(
  admin: AdminClient,
  group: CanaryGroup,
  body: GroupBody,
): Promise<void> {
  const { models = [], ...match } = body.match ?? {};
  const document = { ...body, match: { ...match, models: [group.model, ...models] } };
  const answer = await admin('putGroup', { params: { name: group.name }, body: document });
  bodyOf(`making the group ${group.name}`, answer);
}

/** Finds groups that an earlier canary has made: by their names and by what they match. */
export async function leftovers(admin: AdminClient): Promise<string[]> {
  const page = bodyOf('listing groups', await admin('listGroups', { query: { limit: 1_000 } }));
  return page.groups.filter(isCanaryGroup).map(({ name }) => name);
}

/** Asks for the state of a group. */
export async function statusOf(admin: AdminClient, name: string): Promise<GroupStatus> {
  return bodyOf(`status of ${name}`, await admin('getGroupStatus', { params: { name } }));
}

/**
 * Removes a group whose calls were closed. Calls that still wait are taken out of its queue first: they would be
 * routed anew otherwise, to a group that has room.
 */
export async function removeGroup(admin: AdminClient, name: string): Promise<void> {
  const isEmpty = async (): Promise<boolean> => (await statusOf(admin, name)).queued === 0;
  // Whatever keeps it from being asked does not keep it from being removed.
  const emptied = await until(isEmpty, { withinMs: EMPTY_WITHIN_MS }).catch(() => null);
  if (emptied === null) await cancelWaiters(admin, name).catch(() => undefined);
  const answer = await admin('deleteGroup', { params: { name } });
  if (!answer.ok && answer.status === 404) return;
  bodyOf(`removing the group ${name}`, answer);
}

async function cancelWaiters(admin: AdminClient, name: string): Promise<void> {
  const { waiters } = bodyOf('waiters', await admin('listWaiters', { params: { name } }));
  for (const { ticket } of waiters) {
    await admin('cancelWaiter', { params: { name, ticket } });
  }
}
