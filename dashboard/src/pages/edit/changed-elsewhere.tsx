import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { version } from '../../feed.ts';
import { useAnswer } from '../../ui/use-answer.ts';

/** Notice that the group was changed elsewhere. The review shows the difference, and offers a choice. */
export function ChangedElsewhere({ name }: { readonly name: string }) {
  const [opened, setOpened] = useState(version.value);
  const now = version.value;
  useEffect(() => setOpened((before) => before ?? now), [now]);
  const [answer] = useAnswer(
    () => api('GET /audit', { query: { action: `group ${name}:`, limit: 1 } }),
    [name, now],
  );
  const latest = answer?.ok === true ? answer.body.entries[0] : undefined;
  if (opened === null || latest === undefined || latest.version <= opened) return null;
  return (
    <p role="status" class="notice">
      {latest.actor} changed this group after you opened it. “Review change” shows the difference
      before anything applies.
    </p>
  );
}
