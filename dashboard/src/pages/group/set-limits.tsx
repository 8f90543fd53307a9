import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { complain, say } from '../../ui/toasts.tsx';

/** Creates a configuration for an automatic group, with its current limit, and opens the form. */
export function SetLimits({ name }: { readonly name: string }) {
  const { route } = useLocation();
  const [isBusy, setBusy] = useState(false);
  const configure = async (): Promise<void> => {
    setBusy(true);
    const result = await api('POST /groups/{name}/configure', { params: { name } });
    setBusy(false);
    // 409: it is configured already, and can be edited.
    if (!result.ok && result.problem.status !== 409) return complain(result.problem.detail);
    say(`${name} now has its own settings, with its previous limit.`);
    route(`/admin/groups/${encodeURIComponent(name)}/edit`);
  };
  return (
    <button type="button" disabled={isBusy} onClick={() => void configure()}>
      Set limits
    </button>
  );
}
