// Each episode shows one moment at a time; the slider, the button and the pictures of the strip choose it.
for (const film of document.querySelectorAll(".rollout")) {
  const moments = [...film.querySelectorAll(".moment")];
  const slider = film.querySelector("input"), button = film.querySelector("button"), time = film.querySelector("output");
  if (!slider || moments.length === 0) continue;
  let playing = null;
  const show = at => {
    moments.forEach((moment, index) => { moment.hidden = index !== at; });
    slider.value = at;
    time.textContent = moments[at].dataset.time;
  };
  const pause = () => { clearInterval(playing); playing = null; button.textContent = "Play"; };
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  button.addEventListener("click", () => {
    if (playing !== null) return pause();
    button.textContent = "Pause";
    if (Number(slider.value) === moments.length - 1) show(0);
    playing = setInterval(() => {
      const next = Number(slider.value) + 1;
      if (next >= moments.length) return pause();
      show(next);
    }, Number(film.dataset.interval));
  });
  for (const picture of film.querySelectorAll(".reel img")) {
    picture.addEventListener("click", () => { pause(); show(Number(picture.dataset.at)); });
  }
  film.querySelector(".controls").hidden = false;
  show(0);
}
