import { durationMs } from '../../contract/config/duration.ts';
import { memberIdOf } from '../../contract/config/members.ts';
import type { GroupConfig } from '../../contract/config/config.ts';
import { quoteName, type FieldError } from '../field-error.ts';

/** Finds members that could not be told apart. */
export function memberErrors(group: GroupConfig, path: string): FieldError[] {
  const first = new Map<string, number>();
  return group.members.flatMap((member, index) => {
    const id = memberIdOf(member);
    const before = first.get(id);
    if (before === undefined) {
      first.set(id, index);
      return [];
    }
    const message = `is ${quoteName(id)}, as members[${before}] is; give it a name of its own`;
    return [{ path: `${path}.members[${index}].name`, message }];
  });
}

/** Warns of an affinity that outlasts every wait: its calls end in the queue, while another member has room. */
export function memberWarnings({ name, affinity, queue }: GroupConfig): string[] {
  if (affinity === null || durationMs(affinity.wait) < queue.timeout_ms) return [];
  return [
    `Group "${name}": affinity.wait is not shorter than queue.timeout_ms, so that a call whose member is full is ` +
      'refused with queue_timeout, though another may have room.',
  ];
}
