import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import './modal.css';

export function Modal(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class={props.isWide === true ? 'modal wide' : 'modal'}
      aria-labelledby={id}
      onClose={props.onClose}
    >
      <h2 id={id}>{props.title}</h2>
      {props.children}
    </dialog>
  );
}
