import { AUTO_PREFIX } from '../../../src/contract/pool-name.ts';
import { EXIT, CommandFailure } from '../failure.ts';
import { plural } from '../../../src/core/words/figures.ts';
import { noteAll, show, type Output } from '../output.ts';
import { takenOf, type CliTarget } from '../target.ts';
import { allLeases } from './status.ts';

/** Releases a lease. Without a group, all busy groups are searched for it. */
export async function release(
  target: CliTarget,
  output: Output,
  lease: string,
  group: string | undefined,
): Promise<void> {
  const name = group ?? (await groupOfLease(target, lease));
  const answer = await target.admin('DELETE /groups/{name}/leases/{id}', {
    params: { name, id: lease },
  });
  const released = await takenOf(target, name, answer);
  show(
    output,
    { group: name, ...released },
    () => `Lease \`${lease}\` in group \`${name}\` is being released.`,
  );
}

async function groupOfLease(target: CliTarget, lease: string): Promise<string> {
  const { items } = await allLeases(target, undefined);
  const found = items.find(({ id }) => id === lease);
  if (found !== undefined) return found.group;
  throw new CommandFailure(
    EXIT.notFound,
    `No group holds lease \`${lease}\`. It may have ended. Run \`headgate leases\` to list the leases.`,
  );
}

const endText = (until: string | null): string => (until === null ? '' : ` until ${until}`);

/** Pauses or resumes groups. The first failure ends the command. The groups before it are reported, in JSON too. */
export async function switchGroups(
  target: CliTarget,
  output: Output,
  route: 'POST /groups/{name}/pause' | 'POST /groups/{name}/resume',
  groups: readonly string[],
  until: string | null = null,
): Promise<void> {
  const answers: unknown[] = [];
  try {
    for (const name of groups) {
      const params = { name };
      const response =
        route === 'POST /groups/{name}/pause'
          ? await target.admin(route, { params, ...(until === null ? {} : { body: { until } }) })
          : await target.admin(route, { params });
      const answer = await takenOf(target, name, response);
      const { paused } = answer.group;
      answers.push({ group: name, paused, until, version: answer.version });
      if (!output.isJson) {
        output.out(`${name} ${paused ? `is paused${endText(until)}` : 'is resumed'}.`);
      }
      noteAll(output, answer.warnings);
    }
  } finally {
    if (output.isJson) show(output, answers, () => '');
  }
}

/** Sets the slot limit of a group and reports the immediate effect. */
export async function setLimit(
  target: CliTarget,
  output: Output,
  group: string,
  slots: number | null,
  until: string | null = null,
): Promise<void> {
  const params = { name: group };
  const body = { limits: { max_concurrency: slots } };
  const requestPreview = () =>
    target.admin('POST /groups/{name}/preview', { params, query: { as: 'patch' }, body });
  let response = await requestPreview();
  if (!response.ok && response.status === 404 && group.startsWith(AUTO_PREFIX)) {
    // An automatic group needs a configuration entry before its limit can change. The entry starts with the current
    // limit.
    await takenOf(target, group, await target.admin('POST /groups/{name}/configure', { params }));
    if (!output.isJson) output.note(`Created a configuration entry for group \`${group}\`.`);
    response = await requestPreview();
  }
  const preview = await takenOf(target, group, response);
  const answer = await target.admin('PATCH /groups/{name}', {
    params,
    body,
    ...(until === null ? {} : { query: { until } }),
  });
  const { version, warnings } = await takenOf(target, group, answer);
  const { now } = preview;
  const from = now?.slots.from ?? null;
  show(output, { group, from, to: slots, until, version, now }, () => {
    // A group that has received no calls reports no previous limit.
    const isKnown = slots === null || typeof now?.slots.to === 'number';
    const before = isKnown ? `${from ?? 'unlimited'} → ` : '';
    const granted = now?.granted_at_once ?? 0;
    const above = now?.in_use_above ?? 0;
    return [
      `${group}: ${before}${slots === null ? 'unlimited slots' : plural(slots, 'slot')}${endText(until)} (version ${version}).`,
      ...(granted > 0 ? [`${plural(granted, 'queued call')} started immediately.`] : []),
      ...(above > 0 ? [`${plural(above, 'call')} in flight above the limit will finish.`] : []),
    ].join('\n');
  });
  noteAll(output, warnings);
}
