import { AUTO_PREFIX } from '../../../src/contract/pool-name.ts';
import { EXIT, CommandFailure } from '../failure.ts';
import { noteAll, show, type Output } from '../output.ts';
import { takenOf, type CliTarget } from '../target.ts';
import { allLeases } from './status.ts';

/** Takes a slot back. Without the group it is looked for in all of them. */
export async function release(
  target: CliTarget,
  output: Output,
  lease: string,
  group: string | undefined,
): Promise<void> {
  const name = group ?? (await groupOfLease(target, lease));
  const answer = await target.admin('releaseLease', { params: { name, id: lease } });
  const released = await takenOf(target, name, answer);
  show(
    output,
    { group: name, ...released },
    () => `The slot of ${lease} in ${name} is being taken back.`,
  );
}

async function groupOfLease(target: CliTarget, lease: string): Promise<string> {
  const { items } = await allLeases(target, undefined);
  const found = items.find(({ id }) => id === lease);
  if (found !== undefined) return found.group;
  throw new CommandFailure(
    EXIT.notFound,
    'No group has such a lease now; headgate leases lists them.',
  );
}

const endText = (until: string | null): string => (until === null ? '' : ` until ${until}`);

/** Pauses groups, or lets them go on. Each is told, to scripts too; the first that cannot be ends the rest. */
export async function switchGroups(
  target: CliTarget,
  output: Output,
  route: 'pauseGroup' | 'resumeGroup',
  groups: readonly string[],
  until: string | null = null,
): Promise<void> {
  const answers: unknown[] = [];
  try {
    for (const name of groups) {
      const params = { name };
      const asked =
        route === 'pauseGroup'
          ? await target.admin(route, { params, ...(until === null ? {} : { body: { until } }) })
          : await target.admin(route, { params });
      const answer = await takenOf(target, name, asked);
      const { paused } = answer.group;
      answers.push({ group: name, paused, until, version: answer.version });
      if (!output.isJson) {
        output.out(`${name} ${paused ? `is paused${endText(until)}` : 'goes on'}.`);
      }
      noteAll(output, answer.warnings);
    }
  } finally {
    if (output.isJson) show(output, answers, () => '');
  }
}

/** Sets how many slots a group has, and says what that does at once. */
export async function setLimit(
  target: CliTarget,
  output: Output,
  group: string,
  slots: number | null,
  until: string | null = null,
): Promise<void> {
  const params = { name: group };
  const body = { limits: { max_concurrency: slots } };
  const ask = () => target.admin('previewGroup', { params, query: { as: 'patch' }, body });
  let asked = await ask();
  if (!asked.ok && asked.status === 404 && group.startsWith(AUTO_PREFIX)) {
    // An automatic group has a limit of its own in an entry of its own, which begins with the limit that it has.
    await takenOf(target, group, await target.admin('configureGroup', { params }));
    if (!output.isJson) output.note(`${group} has an entry of its own now.`);
    asked = await ask();
  }
  const preview = await takenOf(target, group, asked);
  const answer = await target.admin('patchGroup', {
    params,
    body,
    ...(until === null ? {} : { query: { until } }),
  });
  const { version, warnings } = await takenOf(target, group, answer);
  const { now } = preview;
  const from = now?.slots.from ?? null;
  show(output, { group, from, to: slots, until, version, now }, () => {
    // Of a group that was never called nobody knows the slots before.
    const isKnown = slots === null || typeof now?.slots.to === 'number';
    const before = isKnown ? `${from ?? 'any number of'} → ` : '';
    const granted = now?.granted_at_once ?? 0;
    const above = now?.in_use_above ?? 0;
    return [
      `${group}: ${before}${slots ?? 'any number of'} slots${endText(until)} (version ${version}).`,
      ...(granted > 0 ? [`${granted} that waited got a slot at once.`] : []),
      ...(above > 0 ? [`${above} in flight above it go on to their end.`] : []),
    ].join('\n');
  });
  noteAll(output, warnings);
}
