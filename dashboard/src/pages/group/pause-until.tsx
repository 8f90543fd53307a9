import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import type { TemporaryChoice } from '../../model/temporary.ts';
import { Modal } from '../../ui/modal.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { UntilChoice } from '../../ui/until-choice.tsx';

export function PauseUntil({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false);
  const [lasts, setLasts] = useState<TemporaryChoice | null>({});
  const [isBusy, setBusy] = useState(false);
  const pause = async (): Promise<void> => {
    if (lasts === null) return;
    setBusy(true);
    const result = await api('POST /groups/{name}/pause', { params: { name }, body: lasts });
    setBusy(false);
    if (!result.ok) return complain(`Pause ${name}? ${result.problem.detail}`);
    say(`${name} is paused.`);
    setOpen(false);
  };
  const open = (): void => {
    setLasts({});
    setOpen(true);
  };
  return (
    <>
      <button type="button" onClick={open}>
        Pause until…
      </button>
      {isOpen && (
        <Modal title={`Pause ${name}`} onClose={() => setOpen(false)}>
          <p>New calls queue. Calls in flight continue to the end.</p>
          <UntilChoice id="pause-until" unending="until resumed" onChange={setLasts} />
          <div class="actions">
            <button type="button" onClick={() => setOpen(false)}>
              Cancel
            </button>
            <button
              type="button"
              class="primary"
              disabled={isBusy || lasts === null}
              onClick={() => void pause()}
            >
              Pause
            </button>
          </div>
        </Modal>
      )}
    </>
  );
}
