import { api } from '../../api.ts';
import type { UpstreamInfo } from '../../model/upstream-view.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';

/** Asks, and then removes what is configured of an upstream. */
export async function removeUpstream(
  upstream: UpstreamInfo,
  etag: string | null,
  changed: () => void,
): Promise<void> {
  const { id, is_built_in: isBuiltIn, groups } = upstream;
  const isSure = await confirm({
    title: isBuiltIn ? `Put ${id} back as it was built in?` : `Delete ${id}?`,
    says: (
      <p>
        {isBuiltIn
          ? 'What is configured of it is forgotten: its address, secret and paths are the built-in ones again. '
          : 'Calls that name it are refused from then on as upstream_unknown. '}
        {groups.length === 0
          ? 'No group stands for it.'
          : `Groups that stand for it: ${groups.join(', ')}.`}{' '}
        Calls in flight go on to their end.
      </p>
    ),
    verb: isBuiltIn ? 'Put back' : 'Delete',
  });
  if (!isSure) return;
  const result = await api('deleteUpstream', {
    params: { id },
    ...(etag === null ? {} : { ifMatch: etag }),
  });
  if (result.ok) {
    say(isBuiltIn ? `${id} is as it was built in.` : `${id} is deleted.`);
    for (const warning of result.body.warnings) complain(warning);
  } else complain(result.problem.detail);
  changed();
}
