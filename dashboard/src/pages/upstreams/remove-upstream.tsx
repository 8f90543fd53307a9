import { api } from '../../api.ts';
import type { UpstreamInfo } from '../../model/upstream-view.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';

/** Deletes the configuration of an upstream, after a confirmation. */
export async function removeUpstream(
  upstream: UpstreamInfo,
  etag: string | null,
  changed: () => void,
): Promise<void> {
  const { id, is_built_in: isBuiltIn, groups } = upstream;
  const isSure = await confirm({
    title: isBuiltIn ? `Reset ${id} to its built-in settings?` : `Delete ${id}?`,
    says: (
      <p>
        {isBuiltIn
          ? 'Its address, secret and paths return to the built-in values. '
          : 'Calls that name it are refused with upstream_unknown. '}
        {groups.length === 0 ? 'No group uses it.' : `Groups that use it: ${groups.join(', ')}.`}{' '}
        Calls in flight continue to the end.
      </p>
    ),
    verb: isBuiltIn ? 'Reset upstream' : 'Delete upstream',
  });
  if (!isSure) return;
  const result = await api('DELETE /upstreams/{id}', {
    params: { id },
    ...(etag === null ? {} : { ifMatch: etag }),
  });
  if (result.ok) {
    say(isBuiltIn ? `Reset ${id} to its built-in settings.` : `Deleted ${id}.`);
    for (const warning of result.body.warnings) complain(warning);
  } else complain(result.problem.detail);
  changed();
}
