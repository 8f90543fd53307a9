import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { complain, say } from '../../ui/toasts.tsx';

/** Gives an automatic group an entry of its own, with the limit that it has now, and leads to its form. */
export function SetLimits({ name }: { readonly name: string }) {
  const { route } = useLocation();
  const [isBusy, setBusy] = useState(false);
  const configure = async (): Promise<void> => {
    setBusy(true);
    const result = await api('configureGroup', { params: { name } });
    setBusy(false);
    // Somebody else was faster: then it can be edited all the same.
    if (!result.ok && result.problem.status !== 409) return complain(result.problem.detail);
    say(`${name} has settings of its own now, with the limit that it had.`);
    route(`/admin/groups/${encodeURIComponent(name)}/edit`);
  };
  return (
    <button type="button" disabled={isBusy} onClick={() => void configure()}>
      Set limits
    </button>
  );
}
