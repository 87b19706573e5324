// Buttons that copy what stands beside them, or print. The page works without this script, which shows them.

const live = document.getElementById('live') as HTMLElement

for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
  // There is a clipboard in a secure context only.
  button.hidden = !('clipboard' in navigator)
  button.addEventListener('click', async () => {
    const { copy = '', copied = '' } = button.dataset
    await navigator.clipboard.writeText(copy)
    live.classList.add('shown')
    live.textContent = copied
  })
}

for (const button of document.querySelectorAll<HTMLButtonElement>('button.print')) {
  button.hidden = false
  button.addEventListener('click', () => print())
}
