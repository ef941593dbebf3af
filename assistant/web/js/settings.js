// The settings panel. Gradio takes a slider for released only by a pointer, not by a key.

document.addEventListener("change", ({ target }) => {
  if (target.type === "range") target.dispatchEvent(new Event("pointerup", { bubbles: true }));
});
